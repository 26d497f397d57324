"""The demo's config is one that the product takes, and tells of its providers what it claims."""

from app.catalog.load import load_catalog
from app.expectation.expect import expect
from app.expectation.model import Basis
from app.simulator.demo import SECRET_VARIABLE, demo_config
from app.simulator.hidden import pace_of
from app.simulator.scenarios import DEMO
from app.targets.load import load_config
from app.targets.model import SecretRef, SecretSource


def test_every_host_is_a_target_that_fits_its_interval() -> None:
    config = load_config(demo_config(1234, 5678))
    catalog, hosts = load_catalog(), {host.name: host for host in DEMO}
    assert {target.provider.name for target in config.targets} == set(hosts)
    ratios = {}
    for target in config.targets:
        host = hosts[target.provider.name]
        assert target.provider.base_url == f"http://127.0.0.1:1234/{host.name}/v1"
        assert target.model == host.model
        step_s = pace_of(host.hidden, catalog=catalog).step_s
        assert 0.5 + target.recipe.output_tokens * step_s < target.every_s - 1
        assert target.deployment is not None
        expected = expect(target.deployment, catalog=catalog)
        assert (expected.basis is Basis.LAYER_LAW) is (host.name == "sram")
        assert expected.expected_tps is not None
        ratios[host.name] = 1 / step_s / expected.expected_tps
    assert 0.15 < ratios.pop("slow") < 0.3
    assert ratios.pop("drafting") * 2.21 > 1.25
    assert all(0.95 < ratio < 1.05 for ratio in ratios.values())


def test_alerts_go_to_the_receiver_signed() -> None:
    channel = load_config(demo_config(1234, 5678)).channels["receiver"]
    assert channel.urls == ("http://127.0.0.1:5678/",)
    assert channel.secrets == (SecretRef(source=SecretSource.ENV, name=SECRET_VARIABLE),)
