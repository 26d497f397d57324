"""How things are called: one spelling for comparison, and what a name may be once its decorations are taken off."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_SEPARATORS = re.compile(r"[\s_/:.@]+")
_ENDINGS = (
    *("-instruct", "-it", "-chat", "-thinking", "-reasoning", "-base", "-versatile", "-instant", "-hf", "-tee", "-turbo"),
    *("-maas", "-latest", "-preview", "-fast", "-lite", "-low-latency", "-gguf", "-mlx", "-tput", "-free"),
    *("-cloud", "-terminus", "-original"),
    *("-fp8", "-bf16", "-fp16", "-fp4", "-int4", "-int8", "-awq", "-gptq", "-nvfp4", "-mxfp4", "-4bit", "-8bit"),
)
"""What providers and file names add to a model's name without making another model of it."""
_DATE = re.compile(
    r"[-@](?:v0\.\d|20\d\d[-.]?(?:0[1-9]|1[0-2])(?:[-.]?\d\d)?|2[3-9](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])[0-3]\d)$"
)
_FILE_TYPE = re.compile(r"-(?:i?q\d(?:_[0-9a-z]+)*|ud-[a-z0-9_]+|w\d+a\d+)$")


def fold(text: str) -> str:
    """A name for comparison: lower case, one kind of separator."""
    return _SEPARATORS.sub("-", text.strip().lower()).strip("-")


def squeeze(text: str) -> str:
    """A name without any separator, for those who leave them out (`llama3.1:8b`, `h100 sxm 80 gb`)."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def spellings(text: str) -> Iterator[str]:
    """A name as it is, then without a provider's prefix, a `:suffix`, and endings, likeliest first; not folded."""
    plain = text.strip().lower()
    forms = dict.fromkeys((plain, plain.rsplit("/", 1)[-1]))
    for form in tuple(forms):
        forms[form.split(":", 1)[0]] = None
    for form in tuple(forms):
        forms[re.sub(r"(?<=\d)p(?=\d)", ".", form.replace("llama-v", "llama-"))] = None
    for form in forms:
        yield form
    for form in forms:
        yield from peeled(form)


def peeled(form: str) -> Iterator[str]:
    """A name without its endings, dates and file types, one after another."""
    while True:
        shorter = _FILE_TYPE.sub("", _DATE.sub("", form))
        if shorter == form:
            shorter = next((form.removesuffix(ending) for ending in _ENDINGS if form.endswith(ending)), form)
        if shorter in {form, ""}:
            return
        form = shorter
        yield form


@dataclass(frozen=True, slots=True)
class Names:
    """Folded name -> ids that it may mean: by ids and aliases first, then by what is left of an id without endings."""

    own: Mapping[str, tuple[str, ...]]
    shortened: Mapping[str, tuple[str, ...]]
    squeezed: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Iterable[str]]]) -> Names:
        """From each row's id and its other names."""
        own: dict[str, dict[str, None]] = {}
        shortened: dict[str, dict[str, None]] = {}
        squeezed: dict[str, dict[str, None]] = {}
        for row_id, names in rows:
            for name in filter(None, (row_id, row_id.rsplit("/", 1)[-1], *names)):
                own.setdefault(fold(name), {})[row_id] = None
                squeezed.setdefault(squeeze(name), {})[row_id] = None
            for name in peeled(row_id.rsplit("/", 1)[-1].lower()):
                shortened.setdefault(fold(name), {})[row_id] = None
                squeezed.setdefault(squeeze(name), {})[row_id] = None
        return cls(*({name: tuple(ids) for name, ids in found.items()} for found in (own, shortened, squeezed)))

    def ids(self, text: str) -> tuple[str, ...]:
        """The ids that a text may mean; one where it is clear, none where nobody is called so."""
        forms = tuple(dict.fromkeys(spellings(text)))
        for index, key in ((self.own, fold), (self.shortened, fold), (self.squeezed, squeeze)):
            for form in forms:
                found = index.get(key(form), ())
                exact = tuple(row_id for row_id in found if fold(row_id) == key(form))
                if len(exact) == 1 or found:
                    return exact or found
        return ()

    def near(self, text: str, *, most: int = 4) -> tuple[str, ...]:
        """Ids whose names look like a text, closest first."""
        from difflib import get_close_matches

        folded = fold(text)
        holding = [name for name in self.own if len(folded) >= 3 and folded in name]
        close = [*sorted(holding, key=len)[:most], *get_close_matches(folded, self.own, n=6, cutoff=0.55)]
        return tuple(dict.fromkeys(row_id for name in close for row_id in self.own[name]))[:most]
