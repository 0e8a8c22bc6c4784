"""What the chart puts on nodes: the agent of hosts, whose pods have the node's network and a folder of it."""
import yaml
from test_cluster import CHART, pods, ready


def test_the_agent_of_hosts_is_on_each_node_that_serves_where_its_namespace_allows_it(cluster, namespace):
    """And nowhere under the restricted standard, which the API server says."""
    hosts, serving = f"{namespace[:40]}-hosts", ("node-1", "node-3")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": hosts, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
    for node in serving:
        cluster.kubectl("label", "--overwrite", "node", node, "oal/serves=true")

    def rendered(where: str) -> list[dict]:
        done = cluster.helm("template", "oal", str(CHART), "-n", namespace, "-f",
                            str(CHART / "examples" / "host-agent.yaml"), "-s", "templates/host-agent.yaml",
                            "--validate", "--set", f"hostAgent.namespace={where},hostAgent.congestionControl=enforce")
        assert done.returncode == 0, done.stderr
        return [o for o in yaml.safe_load_all(done.stdout) if o]
    try:
        cluster.apply(*rendered(hosts), *rendered(namespace))
        there = lambda: sorted(p["spec"]["nodeName"] for p in pods(cluster, hosts, "host-agent") if ready(p))
        cluster.wait("a pod on each node that serves", lambda: there() == list(serving), 60)
        refused = lambda: cluster.kubectl("-n", namespace, "get", "events", "--field-selector=reason=FailedCreate")
        cluster.wait("the restricted namespace refuses it", lambda: "hostNetwork" in refused(), 60)
        assert not pods(cluster, namespace, "host-agent")
    finally:
        for node in serving:
            cluster.kubectl("label", "node", node, "oal/serves-")
        cluster.kubectl("delete", "namespace", hosts, "--wait=false")
