"""Checks manifests as kubeconform -strict does, for the kinds that packaging/kubernetes/ uses: a field
that the kind does not have, a missing one or one of another type is an error. Beyond that, a selector
has to select the pods of its own template. The fields are those of the Kubernetes API reference, v1.31.
"""

import re

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")


class Of:
    """An object: its fields and their types. `needs` are those that have to be there."""

    def __init__(self, needs=(), **fields):
        self.needs, self.fields = set(needs), fields


def text(value):
    return isinstance(value, str)


def name(value):
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def truth(value):
    return isinstance(value, bool)


def port(value):
    return whole(value) and 1 <= value <= 65535


def one_of(*words):
    return lambda value: value in words


def texts(value):
    return isinstance(value, dict) and all(text(key) and text(each) for key, each in value.items())


def quantities(value):
    return isinstance(value, dict) and all(QUANTITY.fullmatch(str(each)) for each in value.values())


METADATA = Of(name=name, namespace=name, labels=texts, annotations=texts)
SELECTOR = Of(["matchLabels"], matchLabels=texts)
SECURITY = Of(allowPrivilegeEscalation=truth, capabilities=Of(drop=[text], add=[text]), privileged=truth,
              runAsNonRoot=truth, runAsUser=whole, readOnlyRootFilesystem=truth,
              seccompProfile=Of(["type"], type=one_of("RuntimeDefault", "Unconfined", "Localhost"),
                                localhostProfile=text))
VARIABLE = Of(["name"], name=text, value=text,
              valueFrom=Of(fieldRef=Of(["fieldPath"], fieldPath=text, apiVersion=text)))
CONTAINER = Of(["name", "image"], name=name, image=text, command=[text], args=[text], env=[VARIABLE],
               imagePullPolicy=one_of("Always", "IfNotPresent", "Never"),
               ports=[Of(["containerPort"], name=name, containerPort=port, protocol=one_of("TCP", "UDP"))],
               resources=Of(limits=quantities, requests=quantities), securityContext=SECURITY)
POD = Of(["containers"], containers=[CONTAINER], initContainers=[CONTAINER], subdomain=name, hostname=name,
         restartPolicy=one_of("Always", "OnFailure", "Never"), nodeSelector=texts)
TEMPLATE = Of(["spec"], metadata=METADATA, spec=POD)
REPLICAS = Of(["template"], replicas=whole, template=TEMPLATE,
              restartPolicy=one_of("Always", "OnFailure", "Never", "ExitCode"))
PEERS = [Of(podSelector=SELECTOR, namespaceSelector=SELECTOR)]
POLICY_PORTS = [Of(port=port, protocol=one_of("TCP", "UDP"))]
KINDS = {
    ("v1", "Service"): Of(["ports"], clusterIP=one_of("None"), selector=texts,
                          ports=[Of(["port"], name=name, port=port, targetPort=port,
                                    protocol=one_of("TCP", "UDP"))]),
    ("apps/v1", "Deployment"): Of(["selector", "template"], replicas=whole, selector=SELECTOR,
                                  template=TEMPLATE),
    ("batch/v1", "Job"): Of(["template"], backoffLimit=whole, completions=whole, parallelism=whole,
                            completionMode=one_of("Indexed", "NonIndexed"), template=TEMPLATE,
                            ttlSecondsAfterFinished=whole),
    ("networking.k8s.io/v1", "NetworkPolicy"): Of(
        ["podSelector"], podSelector=SELECTOR, policyTypes=[one_of("Ingress", "Egress")],
        ingress=[Of(**{"from": PEERS, "ports": POLICY_PORTS})],
        egress=[Of(to=PEERS, ports=POLICY_PORTS)]),
    ("kubeflow.org/v2beta1", "MPIJob"): Of(
        ["mpiReplicaSpecs"], slotsPerWorker=whole, sshAuthMountPath=text,
        runPolicy=Of(cleanPodPolicy=one_of("Running", "All", "None")),
        mpiReplicaSpecs=Of(["Launcher", "Worker"], Launcher=REPLICAS, Worker=REPLICAS)),
}


def problems_of(value, wanted, where):
    """Of one value, recursively; `wanted` is an Of, a list with the type of its items, or a predicate."""
    if isinstance(wanted, Of):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        found = [f"{where}.{field} is missing" for field in sorted(wanted.needs - value.keys())]
        for field, each in value.items():
            found += ([f"{where} has no field {field}"] if field not in wanted.fields
                      else problems_of(each, wanted.fields[field], f"{where}.{field}"))
        return found
    if isinstance(wanted, list):
        if not isinstance(value, list) or not value:
            return [f"{where} is no list"]
        return [problem for number, each in enumerate(value)
                for problem in problems_of(each, wanted[0], f"{where}[{number}]")]
    return [] if wanted(value) else [f"{where} cannot be {value!r}"]


def unselected(manifest):
    """A Deployment's selector has to be among its template's labels; a Job's pods do not restart always."""
    template = manifest["spec"].get("template", {})
    labels = template.get("metadata", {}).get("labels", {})
    wanted = manifest["spec"].get("selector", {})
    wanted = wanted.get("matchLabels", {}) if manifest["kind"] == "Deployment" else {}
    found = [f"no label {key}={each} in the template" for key, each in wanted.items() if labels.get(key) != each]
    if manifest["kind"] == "Job" and template.get("spec", {}).get("restartPolicy", "Always") == "Always":
        found.append("a Job's restartPolicy has to be OnFailure or Never")
    return found


def problems(manifest):
    """What Kubernetes would refuse; [] if nothing."""
    if not isinstance(manifest, dict):
        return ["it is no object"]
    kind = (manifest.get("apiVersion"), manifest.get("kind"))
    if kind not in KINDS:
        return [f"{kind} is no kind that is known here"]
    whole_manifest = Of(["metadata", "spec"], apiVersion=text, kind=text, metadata=METADATA, spec=KINDS[kind])
    found = problems_of(manifest, whole_manifest, kind[1])
    if not manifest.get("metadata", {}).get("name"):
        found.append("metadata.name is missing")
    return found or unselected(manifest)


def pods(manifest):
    """The pod specs of a manifest."""
    spec = manifest["spec"]
    if "template" in spec:
        return [spec["template"]["spec"]]
    return [each["template"]["spec"] for each in spec.get("mpiReplicaSpecs", {}).values()]
