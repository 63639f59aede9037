#!/usr/bin/env python3
"""What other projects put into their CI, as it is written: the steps of action.yml, and the manifests.

usage: ci_snippets_test.py [BUILD_DIR]
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()


def setUpModule():
    if yaml is None:
        raise unittest.SkipTest("python3-yaml is not installed for this python3")


def run_action(folder, inputs):
    """Runs the steps as a GitHub runner does; the status and output of the first that fails."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: about.get("default", "") for name, about in action["inputs"].items()} | inputs
    for step in action["runs"]["steps"]:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)}
        for name, value in step["env"].items():
            value = value.replace("${{ github.action_path }}", str(folder))
            for key, text in given.items():
                value = value.replace("${{ inputs.%s }}" % key, text)
            environment[name] = value
        done = subprocess.run([step["shell"], "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                              env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            break
    return done


class Action(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build").mkdir()
        (self.folder / "build/release").symlink_to(BUILD)

    def test_runs_commands_with_a_device(self):
        done = run_action(self.folder, {"run": "ibv_devices | grep verbena0\necho \"it's done\"",
                                        "options": "--address 127.33.1.7 --fault 'loss 1%'"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verbena0", done.stdout)
        self.assertIn("it's done", done.stdout)

    def test_a_command_that_fails_fails_the_step(self):
        for commands in ("exit 7", "false | true\necho not reached", "no_such_program"):
            done = run_action(self.folder, {"run": commands, "options": "--address 127.33.1.7"})
            self.assertNotEqual(done.returncode, 0, commands)
            self.assertNotIn("not reached", done.stdout)

    def test_an_option_that_does_not_exist_is_refused(self):
        done = run_action(self.folder, {"run": "true", "options": "--no-such-option"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("--no-such-option", done.stderr)


class Files(unittest.TestCase):
    def test_the_gitlab_snippet_has_a_job_to_extend(self):
        snippet = yaml.safe_load((ROOT / "packaging/gitlab-ci.yml").read_text())
        for line in snippet[".verbena"]["before_script"]:
            subprocess.run(["bash", "-n", "-c", line], check=True)

    def test_pods_need_no_privilege(self):
        manifests = yaml.safe_load_all((ROOT / "packaging/kubernetes/two-pods.yaml").read_text())
        pods = [manifest["spec"]["template"]["spec"] for manifest in manifests
                if "template" in manifest["spec"]]
        self.assertEqual(len(pods), 2)
        for container in (container for pod in pods for container in pod["containers"]):
            context = container["securityContext"]
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
            self.assertFalse(context["allowPrivilegeEscalation"])


if __name__ == "__main__":
    unittest.main()
