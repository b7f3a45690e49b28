"""What a recipe is, and the record of what it decides.

A recipe is a folder of `codemods/recipes` whose `recipe.py` has a `RECIPE`. Its `decide` is given a
`Run`: it reads sources from it, makes each edit inside `with run.edit(NAME)`, and says in `run.why`
why the tree needs the recipe or does not. A `Refusal` raised inside becomes that edit's
outcome; raised outside, it refuses every edit of the recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from codemods.engine.plan import About, FileChange, Outcome, Reason, Status, Verdict
from codemods.engine.sources import Edited, Refusal, SourceFile, Sources
from codemods.transforms import source


@dataclass(frozen=True)
class Recipe:
    """One fix.

    `edits` are its edits' names in the order they are reported, `writes` the same in the order in
    which their files are written: after each file the tree must import and serve.
    `means` says which reasons decide the verdict where nothing is to be done. `reads` are regular
    expressions for the files of a release that `decide` and the proofs read, relative to the
    package; `reads_tests` for those beside it in the source archive, relative to its root.
    `kernels` has, by upstream's name of a kernel, the parameter that it lists.
    """

    name: str
    about: About
    edits: tuple[str, ...]
    writes: tuple[str, ...]
    means: Mapping[Reason, Verdict]
    reads: tuple[str, ...]
    decide: Callable[[Run], None]
    reads_tests: tuple[str, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Run:
    """One run of a recipe over a tree: the sources, and what was decided so far.

    Edits that are not wanted are decided too, since others rest on what the tree has of them, but
    change nothing.
    """

    recipe: Recipe
    sources: Sources
    wanted: frozenset[str]
    replace: bool = False
    why: str = ""
    _outcomes: dict[str, Outcome] = field(default_factory=dict)
    _present: set[str] = field(default_factory=set)
    _after: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    _edited: dict[str, list[str]] = field(default_factory=dict)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(self._outcomes[edit] for edit in self.recipe.edits if edit in self._outcomes)

    @contextmanager
    def edit(self, name: str, file: str | None = None) -> Iterator[None]:
        """Decide one edit; a refusal inside becomes its outcome.

        `file` is named where the code is nested too deeply for LibCST's own walk over it.
        """
        try:
            with too_deep_refused(file):
                yield
        except Refusal as refusal:
            self.add(refusal.outcome(name))

    def every_edit(self, status: Status, reason: Reason, detail: str, file: str | None) -> None:
        """Give every edit the same outcome."""
        for edit in self.recipe.edits:
            self.add(Outcome(edit, status, reason, detail, file))

    def refuse_the_rest(self, refusal: Refusal) -> None:
        """Refuse every edit that has no outcome yet."""
        for edit in self.recipe.edits:
            if edit not in self._outcomes:
                self.add(refusal.outcome(edit))

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome; a refusal takes the place of what the same edit had before."""
        if outcome.status is Status.PRESENT:
            self._present.add(outcome.edit)
        if outcome.edit not in self.wanted:
            return
        if outcome.status is Status.REFUSED or outcome.edit not in self._outcomes:
            self._outcomes[outcome.edit] = outcome

    def take(self, edited: Edited, file: SourceFile | None) -> None:
        """Keep an edit's outcome and, where it is wanted, the bytes that it makes of the file.

        `file` is as `sources` has it now: a later edit of it starts from this one's result.
        """
        if file is None or edited.module is None or edited.outcome.edit not in self.wanted:
            self.add(edited.outcome)
            return
        if file.name not in self._after:
            file.require_syntax()  # else a second run could not tell what stands there
        after = edited.module.bytes
        if _loses_white_space(edited, file, after):
            raise Refusal(
                Reason.UNPARSABLE, "parsing it would change white space outside the edit", file.name
            )
        self._move_outcomes(file.name, file.data, after)
        before, now = self._after.get(file.name, (file.data, file.data))
        assert now == file.data, f"{file.name} was read before an earlier edit of it"
        self._after[file.name] = (before, after)
        self._edited.setdefault(file.name, []).append(edited.outcome.edit)
        self.add(edited.outcome_on_its_line(file.data, after))
        self.sources.put(SourceFile.made(file.name, after, edited.module))

    def _move_outcomes(self, name: str, before: bytes, after: bytes) -> None:
        """Earlier edits of the file point at lines that a later one may move."""
        for edit, outcome in self._outcomes.items():
            if outcome.file == name:
                self._outcomes[edit] = outcome.moved(before, after)

    def sources_after(self) -> Sources:
        """The tree as the edits so far leave it."""
        made = {name: after for name, (_, after) in self._after.items()}
        return Sources(self.sources.checkout.overlaid(made)) if made else self.sources

    def in_force(self, edit: str) -> bool:
        """Whether an edit's effect is in the tree, or will be."""
        return edit in self._present or self.makes(edit)

    def makes(self, edit: str) -> bool:
        """Whether this run makes the edit."""
        outcome = self._outcomes.get(edit)
        return outcome is not None and outcome.status is Status.EDIT

    def is_present(self, edit: str) -> bool:
        """Whether the tree has the edit's effect already."""
        return edit in self._present

    def changes(self) -> tuple[FileChange, ...]:
        ranks = {edit: self._rank(edit) for edit in self.recipe.writes}
        return tuple(
            FileChange(
                name,
                before,
                after,
                tuple(edits),
                max(ranks[edit] for edit in edits),
                self.sources.checkout.mode(name),
            )
            for name, (before, after) in sorted(self._after.items())
            for edits in (self._edited[name],)
        )

    def _rank(self, edit: str) -> int:
        """Where an edit's files come in the write; what is removed goes in the other direction."""
        rank = self.recipe.writes.index(edit)
        outcome = self._outcomes.get(edit)
        return -rank if outcome is not None and outcome.reason is Reason.REMOVED else rank


def _loses_white_space(edited: Edited, file: SourceFile, after: bytes) -> bool:
    if edited.outcome.reason in (Reason.REMOVED, Reason.REPLACED):  # whose lines are to go
        return file.module.bytes != file.data
    return source.loses_white_space(file.data, after)


@contextmanager
def too_deep_refused(name: str | None) -> Iterator[None]:
    """Refuse what the parser takes and is still nested too deeply for LibCST's own walk over it."""
    try:
        yield
    except RecursionError:
        raise Refusal(Reason.UNPARSABLE, "it is nested too deeply", name) from None
