#!/usr/bin/env python3
"""What other projects put into their CI, as it is written: the steps of action.yml, the lines of
GitLab's job, and the manifests for Kubernetes.

usage: ci_snippets_test.py [BUILD_DIR]
"""

import copy
import pathlib
import shutil
import string
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

import kubernetes_manifests

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import testing  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/test").resolve()


def setUpModule():
    if yaml is None:
        raise unittest.SkipTest("python3-yaml is not installed for this python3")


def run_action(folder, inputs):
    """Runs the steps as a GitHub runner does, those of other actions apart; the first that fails, or the
    last."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: about.get("default", "") for name, about in action["inputs"].items()} | inputs
    for step in action["runs"]["steps"]:
        if "uses" in step:
            continue
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder),
                       "GITHUB_OUTPUT": str(folder / "output")}
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


def copy_sources(folder):
    """Makes a tree like Verbena's. Its `dev` notes its arguments in dev.log, and its builds are
    there already."""
    for name in ("CMakeLists.txt", "CMakePresets.json"):
        shutil.copy(ROOT / name, folder)
    for name in ("cmake", "include", "python", "src", "viewer"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    (folder / "dev").write_text(
        '#!/bin/sh\ncd "$(dirname "$0")"\necho "$*" >>dev.log\n'
        f'test "$*" = "setup product" || {{ test "$*" = "build product" && mkdir -p build && '
        f'ln -sfn "{BUILD}" build/product; }}\n')
    (folder / "dev").chmod(0o755)


class Action(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        copy_sources(self.folder)

    def cache_key(self):
        (self.folder / "output").unlink(missing_ok=True)
        run_action(self.folder, {"run": "true", "options": "--address 127.33.1.7"})
        return (self.folder / "output").read_text()

    def test_a_change_of_the_sources_is_built_anew(self):
        before = self.cache_key()
        self.assertRegex(before, r"\Ahash=[0-9a-f]{16}\n\Z")
        self.assertEqual(self.cache_key(), before)
        for name in ("src/file", "viewer/file", "python/file"):
            (self.folder / name).write_text("changed")
            now = self.cache_key()
            self.assertNotEqual(now, before, name)
            before = now

    def test_a_build_from_the_cache_gets_its_libraries(self):
        """Another machine has built it: the packages of this one have never been installed."""
        for _ in range(2):
            self.assertEqual(run_action(self.folder, {"run": "true"}).returncode, 0)
        self.assertEqual((self.folder / "dev.log").read_text(), "build product\nsetup product\n")

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


def gitlab_job(project):
    """The variables and the lines of a job that extends .verbena, as the snippet's first lines show it."""
    path = ROOT / "packaging/gitlab-ci.yml"
    hidden = yaml.safe_load(path.read_text())[".verbena"]
    usage = "\n".join(line[2:] for line in path.read_text().splitlines() if line.startswith("#"))
    job = yaml.safe_load(usage.partition("\n")[2])["rdma-tests"]
    variables = {"CI_PROJECT_DIR": str(project)} | hidden["variables"] | job["variables"]
    for _ in variables:  # one may name another
        variables = {name: string.Template(value).safe_substitute(variables)
                     for name, value in variables.items()}
    return variables, hidden["before_script"] + job["script"]


class GitLab(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.project = pathlib.Path(folder.name, "project")
        self.origin = pathlib.Path(folder.name, "verbena")
        for each in (self.project, self.origin):
            each.mkdir()
        copy_sources(self.origin)
        for command in (["init", "-q", "-b", "main"], ["add", "-A"],
                        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first"]):
            subprocess.run(["git", "-C", self.origin, *command], check=True)

    def run_job(self, tests):
        """Runs the lines in one shell that ends at the first failure, as a GitLab runner does."""
        (self.project / "my_rdma_tests").write_text(f"#!/bin/sh\n{tests}\n")
        (self.project / "my_rdma_tests").chmod(0o755)
        variables, lines = gitlab_job(self.project)
        variables |= {"VERBENA_REPOSITORY": str(self.origin), "HOME": str(self.project),
                      "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "VERBENA_ADDRESS": "127.33.1.8"}
        return subprocess.run(["bash", "-eo", "pipefail", "-c", "\n".join(lines)], cwd=self.project,
                              env=variables, capture_output=True, text=True, timeout=120)

    def test_runs_the_job_and_again_from_its_cache(self):
        for _ in range(2):
            done = self.run_job("ibv_devices | grep verbena0")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("verbena0", done.stdout)

    def test_a_test_that_fails_fails_the_job(self):
        self.assertEqual(self.run_job("exit 7").returncode, 7)


def manifests():
    for path in sorted((ROOT / "packaging/kubernetes").glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            yield path.name, manifest


class Kubernetes(unittest.TestCase):
    def test_manifests_are_valid(self):
        found = {f"{name}: {manifest['kind']}": wrong for name, manifest in manifests()
                 if (wrong := kubernetes_manifests.problems(manifest))}
        self.assertEqual(found, {})

    def test_the_check_finds_what_kubernetes_refuses(self):
        """Each edit of the Deployment, and of the Job."""
        two_pods = [manifest for name, manifest in manifests() if name == "two-pods.yaml"]
        for kind, edit in (
                ("Deployment", lambda spec: spec.update(replica=1)),
                ("Deployment", lambda spec: spec.update(replicas="1")),
                ("Deployment", lambda spec: spec.pop("selector")),
                ("Deployment", lambda spec: spec["template"]["metadata"]["labels"].update(app="other")),
                ("Deployment", lambda spec: spec["template"]["spec"].update(containers=[])),
                ("Deployment", lambda spec: spec["template"]["spec"]["containers"][0].update(name="A_b")),
                ("Deployment", lambda spec: spec["template"]["spec"]["containers"][0].update(command="sh")),
                ("Job", lambda spec: spec["template"]["spec"].pop("restartPolicy")),
                ("Service", lambda spec: spec["ports"][0].update(port=65536)),
                ("Service", lambda spec: spec["ports"][0].update(protocol="tcp"))):
            edited = copy.deepcopy(next(each for each in two_pods if each["kind"] == kind))
            edit(edited["spec"])
            self.assertNotEqual(kubernetes_manifests.problems(edited), [], edited)
        for wrong in (None, {}, {"apiVersion": "v1", "kind": "Pod"}):
            self.assertNotEqual(kubernetes_manifests.problems(wrong), [])

    def test_no_pod_asks_for_an_rdma_device_or_a_privilege(self):
        for name, manifest in manifests():
            for container in (each for pod in kubernetes_manifests.pods(manifest) for each in pod["containers"]):
                limits = container.get("resources", {}).get("limits", {})
                self.assertFalse([key for key in limits if "rdma" in key or "hca" in key], name)
                context = container.get("securityContext", {})
                self.assertFalse(context.get("privileged"), name)
                self.assertNotIn("add", context.get("capabilities", {}), name)

    def test_two_pods_run_without_any_privilege(self):
        pods = [pod for name, manifest in manifests() if name == "two-pods.yaml"
                for pod in kubernetes_manifests.pods(manifest)]
        self.assertEqual(len(pods), 2)
        for container in (container for pod in pods for container in pod["containers"]):
            context = container["securityContext"]
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
            self.assertFalse(context["allowPrivilegeEscalation"])


if __name__ == "__main__":
    testing.main(argv=sys.argv[:1])
