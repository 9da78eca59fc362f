"""Certificates hold for the files they were written of, and for nothing that was changed since."""

import json
from pathlib import Path

import pytest
from support.small_network import MODELLED, Command, network

from isoform.compiler import api
from isoform.compiler.reports.certificate import CertifiedWork, body_hash, certificate_of
from isoform.compiler.reports.certificate_schema import SCHEMA
from isoform.compiler.reports.check_certificate import _intact, check_certificate
from isoform.compiler.reports.json_schema import first_fault
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.errors import UserError
from isoform.dialects.program import add_pipeline

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "certificate.md"


@pytest.fixture(params=["r.mlir", "r.onnx"])
def certified(request: pytest.FixtureRequest, net: Path, tmp_path: Path, isoform: Command) -> Path:
    """A certificate of an optimised network, both forms of it."""
    path = tmp_path / "c.json"
    out = ("-o", tmp_path / request.param, "--certificate", path)
    assert isoform("optimize", net, *out, *MODELLED)[0] == 0
    return path


def test_a_certificate_is_checked_again_from_the_files(certified: Path, isoform: Command) -> None:
    status, out, err = isoform("verify", certified)
    assert (status, err) == (0, "")
    assert "source, result and certificate are unchanged\nequal-up-to-folding: " in out
    found = json.loads(isoform("verify", certified, "--json")[1])
    assert found["kind"] == "equal-up-to-folding"
    assert found["source"] == "net.mlir"


def test_it_says_what_was_done_and_by_what(certified: Path) -> None:
    document = json.loads(certified.read_text())
    assert first_fault(document, SCHEMA) is None
    body = document["body"]
    rules = [rewrite["rule"] for rewrite in body["rewrites"]]
    assert {"fold-batch-norm", "fold-constants"} <= set(rules)
    assert {rewrite["proof"] for rewrite in body["rewrites"]} == {"exact"}
    assert body["rewrites"][0]["place"] == "graph.conv 'layer1'"
    assert "fold-batch-norm" in body["pipeline"]
    assert list(body["versions"]) == ["isoform", "python", "xdsl", "numpy", "onnx"]
    assert all("/" not in f["name"] for role in ("source", "result") for f in body[role]["files"])


def test_equal_runs_give_equal_bodies(net: Path, tmp_path: Path, isoform: Command) -> None:
    bodies = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / "c.json"
        isoform("optimize", net, "-o", folder / "r.onnx", "--certificate", path, *MODELLED)
        bodies.append(json.loads(path.read_text())["body"])
    assert bodies[0] == bodies[1]


def test_a_changed_byte_of_any_file_is_refused(certified: Path, isoform: Command) -> None:
    body = json.loads(certified.read_text())["body"]
    files = [(role, f["name"]) for role in ("source", "result") for f in body[role]["files"]]
    assert len(files) == (3 if body["result"]["name"] == "r.onnx" else 4)
    for role, name in files:
        path = certified.parent / name
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 1):
            changed = bytearray(whole)
            changed[place] ^= 1
            path.write_bytes(changed)
            status, out, err = isoform("verify", certified)
            assert (status, out) == (1, "")
            assert err.startswith(f"isoform: error: {name}: this file of the {role} was changed")
            assert err.count("\n") == 1
        path.write_bytes(whole)
    assert isoform("verify", certified)[0] == 0


def test_a_missing_file_is_refused(certified: Path, isoform: Command) -> None:
    (certified.parent / "net.safetensors").unlink()
    status, _, err = isoform("verify", certified)
    assert status == 1
    assert "net.safetensors: cannot read file" in err


def test_any_change_of_the_body_is_refused(certified: Path, isoform: Command) -> None:
    text = certified.read_text()
    document = json.loads(text)
    for change in (
        {"seed": 1},
        {"pipeline": "cse"},
        {"rewrites": document["body"]["rewrites"][1:]},
        {"verdict": {**document["body"]["verdict"], "kind": "equal"}},
        {"versions": {**document["body"]["versions"], "numpy": "9"}},
    ):
        certified.write_text(json.dumps({**document, "body": {**document["body"], **change}}))
        status, out, err = isoform("verify", certified)
        assert (status, out) == (1, "")
        assert err.endswith("c.json: the certificate was changed after it was written\n")
    certified.write_text(text)
    status, out, _ = isoform("verify", certified, "--json")
    left = json.loads(out)["not_checked"]["verdict"]
    assert status == 0
    assert left.keys() == document["body"]["verdict"].keys() - {"kind", "assumptions", "folded"}


def test_a_forged_claim_is_found_by_comparing_again(
    net: Path, certified: Path, isoform: Command
) -> None:
    """Hashes only tell that nothing was changed; that it is true the comparison tells."""
    document = json.loads(certified.read_text())
    path = certified.parent / document["body"]["result"]["name"]
    document["body"]["verdict"]["kind"] = "equal"
    document["body_sha256"] = body_hash(document["body"])
    certified.write_text(json.dumps(document))
    status, _, err = isoform("verify", certified)
    assert status == 1
    assert "do not compare as certified: expected equal, found Equal at every" in err
    assert path.exists()


def test_what_is_no_certificate_is_refused_in_one_line(
    certified: Path, tmp_path: Path, isoform: Command
) -> None:
    document = json.loads(certified.read_text())
    del document["body"]["verdict"]
    broken = tmp_path / "broken.json"
    for text, fault in (
        ("{", "this is not JSON"),
        ("[]", "this is not a certificate: it is not an object"),
        (json.dumps(document), "this is not a certificate: body.verdict is missing"),
        (certified.read_text()[:-40], "this is not JSON"),
        ('{"cost": {}, "rewrites": []}', "this is not a certificate: body is missing"),
    ):
        broken.write_text(text)
        status, out, err = isoform("verify", broken)
        assert (status, out) == (1, "")
        assert err.count("\n") == 1
        assert fault in err


def test_a_built_in_model_may_be_the_source(tmp_path: Path, isoform: Command) -> None:
    path = tmp_path / "c.json"
    arguments = ("--emit", "graph", "-o", tmp_path / "r.mlir", "--certificate", path)
    assert isoform("optimize", "zoo:dcgan", *arguments, *MODELLED)[0] == 0
    assert isoform("verify", path)[0] == 0
    document = json.loads(path.read_text())
    document["body"]["source"]["seed"] = 1
    document["body_sha256"] = body_hash(document["body"])
    path.write_text(json.dumps(document))
    status, _, err = isoform("verify", path)
    assert status == 1
    assert "zoo:dcgan: this file of the source was changed" in err


def test_a_wrong_result_gets_no_certificate(
    relus: Path, planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from isoform.compiler.opt import main

    path, out = tmp_path / "c.json", tmp_path / "out.mlir"
    base = [str(relus), "--plugin", str(planted), "-o", str(out), "--certificate", str(path), "-p"]
    assert main([*base, "relu-to-clip{wrong=3}"]) == 1
    assert "no certificate: Different: output 'r'" in capsys.readouterr().err
    assert not path.exists()
    assert main([*base, "relu-to-clip,cse"]) == 0
    rewrites = json.loads(path.read_text())["body"]["rewrites"]
    assert [r["rule"] for r in rewrites] == ["relu-to-clip/ClipRelu"] * 5 + ["cse"]
    assert rewrites[2]["place"] == "graph.relu 'third'"
    assert {r["proof"] for r in rewrites} == {"verdict"}


def test_external_data_belongs_to_the_model(tmp_path: Path, isoform: Command) -> None:
    import onnx

    path, certificate = tmp_path / "m.onnx", tmp_path / "c.json"
    api.save(network(), path)
    onnx.save(
        onnx.load(path), path, save_as_external_data=True, location="m.data", size_threshold=0
    )
    more = ("-o", tmp_path / "r.onnx", "--certificate", certificate)
    assert isoform("optimize", path, *more, *MODELLED)[0] == 0
    files = json.loads(certificate.read_text())["body"]["source"]["files"]
    assert [f["name"] for f in files] == ["m.onnx", "m.data"]
    assert isoform("verify", certificate)[0] == 0
    data = bytearray((tmp_path / "m.data").read_bytes())
    data[-1] ^= 1
    (tmp_path / "m.data").write_bytes(data)
    status, _, err = isoform("verify", certificate)
    assert status == 1
    assert "m.data: this file of the source was changed" in err


def test_a_certificate_needs_files(net: Path, isoform: Command) -> None:
    status, _, err = isoform("optimize", net, "--certificate", net.parent / "c.json")
    assert status == 2
    assert "a certificate is of a written result" in err


def test_the_document_shows_the_schema_that_is_checked() -> None:
    shown = DOCUMENT.read_text().split("<!-- schema -->\n\n```json\n")[1].split("\n```")[0]
    assert json.loads(shown) == SCHEMA


def test_programs_in_memory_have_one_too() -> None:
    program = network()
    better = api.optimize(program, target="h100")
    document = json.loads(json.dumps(better.certificate))
    assert first_fault(document, SCHEMA) is None
    assert {r["rule"] for r in document["body"]["rewrites"]} >= {"fold-batch-norm"}
    assert check_certificate(document, program, better).kind == "equal-up-to-folding"
    with pytest.raises(UserError, match="this is not the source that was certified"):
        check_certificate(document, network(scale=2.0), better)
    with pytest.raises(UserError, match="this is not the result that was certified"):
        check_certificate(document, program, program)
    document["body"]["pipeline"] = "cse"
    with pytest.raises(UserError, match="changed after it was written"):
        check_certificate(document, program, better)


@pytest.mark.parametrize("stated", ["canonicalize,dce", "dce"])
def test_passes_of_the_source_may_be_left_out_of_the_pipeline(stated: str) -> None:
    """The result's record has them; whoever certifies may state only what ran since."""
    program = network()
    add_pipeline(program.module, "canonicalize")
    better = program.clone()
    run_passes(better, "dce")
    add_pipeline(better.module, "dce")
    document = certificate_of(program, better, CertifiedWork(stated, [], 0))
    assert check_certificate(document, program, better).kind == "equal"
    document["body"]["pipeline"] = "cse"
    document["body_sha256"] = body_hash(document["body"])
    with pytest.raises(UserError, match="pipeline"):
        check_certificate(document, program, better)


def test_a_certificate_of_memory_names_its_check(tmp_path: Path, isoform: Command) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(api.optimize(network(), target="h100").certificate))
    status, _, err = isoform("verify", path)
    assert status == 1
    assert "programs in memory (isoform.check_certificate(certificate, source, result)" in err


@pytest.mark.parametrize("document", [{}, {"body": {}}, {"body_sha256": ""}])
def test_a_document_without_the_parts_of_a_certificate_is_none(document: dict) -> None:
    with pytest.raises(UserError, match="this is not a certificate: "):
        _intact(document, "here")
