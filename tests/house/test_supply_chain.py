"""What the program is made of can be listed, and what is known against it is told."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_bill_of_materials_lists_every_pinned_dependency_with_its_hashes() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "sbom.py")], capture_output=True, text=True, check=True)
    bill = json.loads(done.stdout)
    pinned = re.findall(r"^([a-z0-9][^=\s]*)==(\S+)", (ROOT / "requirements" / "runtime.txt").read_text(), re.MULTILINE)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert [(each["name"], each["version"]) for each in bill["components"]] == pinned
    assert [each["name"] for each in bill["components"] if not each["properties"]] == []
    assert [each["name"] for each in bill["components"] if each["purl"] != f"pkg:pypi/{each['name']}@{each['version']}"] == []


def test_the_audit_tells_each_vulnerability_on_a_line_and_nothing_of_the_sound() -> None:
    vulnerable = runpy.run_path(str(ROOT / "tools" / "audit.py"))["vulnerable"]
    asked = [
        {"name": "sound", "version": "1", "vulns": []},
        {"name": "odd", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}, {"id": "CVE-2", "fix_versions": []}]},
        {"name": "skipped", "version": "?"},
    ]
    assert vulnerable(asked) == ["odd 2: CVE-1, fixed in 3", "odd 2: CVE-2, fixed in no release"]


def test_the_page_on_security_promises_only_commands_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", (ROOT / "SECURITY.md").read_text())) <= targets
