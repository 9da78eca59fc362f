import os
from pathlib import Path

import numpy as np
import pytest

from isoform.dialects.cache_folder import SWEPT, default_folder
from isoform.lowering.kernel_to_cpu.emit.module import KernelCode, Module, kernel
from isoform.lowering.kernel_to_cpu.emit.types import F32, constant
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.runtime.jit import Library, compile_object
from isoform.lowering.kernel_to_cpu.runtime.object_cache import ObjectCache


def store(number: float) -> KernelCode:
    return kernel(Module(), 1, 1, lambda b, p, low, high: b.store(constant(F32, number), p[0]))


def objects_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.o"))


def test_text_that_does_not_parse_is_an_error_with_llvms_message():
    with pytest.raises(RuntimeError, match="parsing error"):
        compile_object("define void @f( {", Isa.host())


def test_a_missing_symbol_is_a_key_error():
    code = store(1.0)
    library = Library([compile_object(code.ir, Isa.host())])
    assert library.address(code.symbol)
    with pytest.raises(KeyError):
        library.address("nothing")


def test_one_library_holds_many_objects_and_equal_ones_once(compiled):
    codes = [store(float(i)) for i in range(5)]
    objects = [compile_object(code.ir, Isa.host()) for code in [*codes, codes[0]]]
    library = Library(objects)
    assert len({library.address(code.symbol) for code in codes}) == 5


def test_isa_levels_are_ordered_and_restrict_registers():
    levels = runnable()
    assert [isa.vector_bytes for isa in levels] == sorted(isa.vector_bytes for isa in levels)
    assert levels[-1] in (Isa.host(), levels[-1])
    with pytest.raises(ValueError, match="choose one of"):
        Isa.named("sse9")


def test_the_environment_forces_a_lower_level(monkeypatch):
    monkeypatch.setenv("ISOFORM_ISA", "plain")
    assert Isa.host() == Isa.named("plain")


def test_the_second_request_is_answered_from_disk(tmp_path):
    isa, code = Isa.host(), store(1.0)
    first = ObjectCache(tmp_path / "new" / "folder")
    data = first.object(code.ir, isa)
    second = ObjectCache(tmp_path / "new" / "folder")
    assert second.object(code.ir, isa) == data
    assert (first.hits, first.misses, second.hits, second.misses) == (0, 1, 1, 0)


def test_other_text_and_other_processors_are_other_entries(tmp_path):
    cache = ObjectCache(tmp_path)
    cache.object(store(1.0).ir, Isa.host())
    cache.object(store(2.0).ir, Isa.host())
    cache.object(store(1.0).ir, Isa.named("plain"))
    assert cache.misses == len(objects_in(tmp_path)) == 3


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_damaged_entry_is_rebuilt(tmp_path, damage):
    isa, code = Isa.host(), store(1.0)
    data = ObjectCache(tmp_path).object(code.ir, isa)
    (file,) = objects_in(tmp_path)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes({"flip": bytes(content), "truncate": content[:-1], "empty": b""}[damage])
    cache = ObjectCache(tmp_path)
    assert cache.object(code.ir, isa) == data
    assert cache.misses == 1
    assert ObjectCache(tmp_path).object(code.ir, isa) == data


def test_a_folder_that_cannot_be_made_means_no_cache(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    cache = ObjectCache(tmp_path / "file" / "cache")
    assert cache.object(store(1.0).ir, Isa.host())
    assert cache.object(store(1.0).ir, Isa.host())
    assert cache.misses == 2


def test_the_oldest_entries_go_when_the_folder_is_full(tmp_path):
    isa = Isa.host()
    codes = [store(float(i)) for i in range(6)]
    sizes = {len(compile_object(code.ir, isa)) + 32 for code in codes}
    cache = ObjectCache(tmp_path, limit=3 * max(sizes))
    for age, code in enumerate(codes):
        cache.object(code.ir, isa)
        for file in objects_in(tmp_path):  # make the order certain whatever the clock's grain
            if file.stat().st_mtime > 1e9:
                os.utime(file, (age, age))
    assert len(objects_in(tmp_path)) == 3
    again = ObjectCache(tmp_path)
    again.object(codes[-1].ir, isa)
    assert again.hits == 1


def test_no_temporary_file_stays_behind(tmp_path):
    ObjectCache(tmp_path).object(store(1.0).ir, Isa.host())
    kept = [file for file in tmp_path.iterdir() if file.name != SWEPT]
    assert [file.suffix for file in kept] == [".o"]


def test_the_environment_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("ISOFORM_CACHE")
    monkeypatch.setenv("HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/.cache/isoform")


def test_objects_outlive_the_cache_and_run(compiled, tmp_path):
    code = store(42.0)
    compiled(code, Isa.host())(out := np.zeros(1, np.float32))
    assert out[0] == 42
