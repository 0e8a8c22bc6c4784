"""Access points, stations and neighbour BSSs: hostapd and wpa_supplicant on hwsim radios.

Radio numbers: APs first, then stations, then neighbours. An hwsim radio N has the address 02:00:00:00:NN:00.
"""
import os
import socket
import struct
import time

from .namespace import inside
from .netlink import (
    NL80211_ATTR_IFINDEX,
    NL80211_ATTR_MAC,
    NL80211_ATTR_STA_INFO,
    NL80211_CMD_GET_STATION,
    Nl80211,
    attr,
    attrs,
    messages,
)
from .offloads import switch_off
from .sh import batch, run, write

NL80211_CMD_CONNECT, NL80211_CMD_DISCONNECT, NL80211_CMD_SET_WIPHY_NETNS = 46, 48, 49
NL80211_ATTR_WIPHY, NL80211_ATTR_WIPHY_FREQ, NL80211_ATTR_SSID, NL80211_ATTR_AUTH_TYPE, NL80211_ATTR_NETNS_FD = (
    1,
    38,
    52,
    53,
    219,
)
STA_INFO_FLAGS, STA_FLAG_AUTHORIZED = 17, 1 << 1

LINKS = "/sys/kernel/debug/hwsim_medium/links"
CHANNELS = "/sys/kernel/debug/hwsim_medium/channels"
PASSPHRASE = "lab-passphrase"


def radio_mac(radio: int) -> str:
    return f"02:00:00:00:{radio:02x}:00"


def set_link(mac: str, rate_kbps: int, loss_permille: int, signal_dbm: int) -> None:
    write(LINKS, f"{mac} {rate_kbps} {loss_permille} {signal_dbm}")


def set_channel(freq_mhz: int, foreign_permille: int, burst_us: int, ext_permille: int, noise_dbm: int) -> None:
    write(CHANNELS, f"{freq_mhz} {foreign_permille} {burst_us} {ext_permille} {noise_dbm}")


def channel_lines(medium: dict) -> str:
    """hostapd's words for the channel."""
    freq, width = medium["freq_mhz"], medium["width_mhz"]
    if freq < 3000:
        number = (freq - 2407) // 5
        lines = (
            f"hw_mode=g\nchannel={number}\nieee80211n=1\nbasic_rates=60 120 240\nsupported_rates=60 90 120 180 240 360"
            " 480 540\n"
        )
        return lines + ("ht_capab=[HT40+][SHORT-GI-20][SHORT-GI-40]\n" if width == 40 else "ht_capab=[SHORT-GI-20]\n")
    number = (freq - 5000) // 5
    lines = f"hw_mode=a\nchannel={number}\nieee80211n=1\nieee80211ac=1\nvht_capab=[SHORT-GI-80]\n"
    if width >= 40:
        lines += "ht_capab=[HT40+][SHORT-GI-20][SHORT-GI-40]\n"
    else:
        lines += "ht_capab=[SHORT-GI-20]\n"
    if width == 80:
        lines += f"vht_oper_chwidth=1\nvht_oper_centr_freq_seg0_idx={number + 6}\n"
    return lines


def start_ap(medium: dict, iface: str, ssid: str, ns: str | None, bridge: str | None, security: str) -> None:
    """One BSS (security: wpa2 or open) with BSS-load element, hostapd in the background."""
    conf = f"/run/lab/hostapd-{ns or 'ap'}.conf"
    write(
        conf, f"interface={iface}\ndriver=nl80211\nssid={ssid}\n" + channel_lines(medium)
        + "wmm_enabled=1\nbeacon_int=100\nap_max_inactivity=3600\ndisassoc_low_ack=0\n" +
        (f"wpa=2\nwpa_passphrase={PASSPHRASE}\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\n" if security == "wpa2" else "")
        + f"bss_load_update_period=100\nctrl_interface=/run/lab/hostapd-{ns or 'ap'}\n" +
        (f"bridge={bridge}\n" if bridge else ""))
    run(f"hostapd -B {conf}", ns)


def start_neighbours(medium: dict, first_radio: int, count: int, per_radio: int, signals: list[int]) -> None:
    """BSSs that only beacon, several to a radio; each has a signal of its own at every receiver."""
    done = 0
    radio = first_radio
    while done < count:
        iface = f"wlan{radio}"
        text = ""
        for i in range(min(per_radio, count - done)):
            bssid = f"02:00:00:01:{radio:02x}:{i:02x}"
            text += f"bss={iface}_{i}\n" if i else f"interface={iface}\ndriver=nl80211\n" + channel_lines(medium)
            text += f"bssid={bssid}\nssid=neighbour-{done + i}\nbss_load_test={3 * i}:{40 + 9 * i}:0\n"
            set_link(bssid, 0, 0, signals[(done + i) % len(signals)])
        conf = f"/run/lab/neighbour-{radio}.conf"
        write(conf, text)
        run(f"hostapd -B {conf}")
        done += per_radio
        radio += 1


def move(radio: int, ns: str) -> None:
    """Into another namespace, with its interface."""
    there = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    Nl80211().do(NL80211_CMD_SET_WIPHY_NETNS, attr(NL80211_ATTR_WIPHY, struct.pack("=I", radio)),
                 attr(NL80211_ATTR_NETNS_FD, struct.pack("=I", there)))
    os.close(there)


def start_station(radio: int, ns: str, ssid: str, freq_mhz: int, security: str, addresses: list[str]) -> None:
    """Move the radio to the station's namespace and let it join the BSS."""
    move(radio, ns)
    switch_off(f"wlan{radio}", ns, ("tso", "gso", "gro"))
    batch("ip", ["link set lo up", f"link set wlan{radio} up", *(f"addr add {a} dev wlan{radio}" for a in addresses)],
          ns)
    join(radio, ns, ssid, freq_mhz, security)


def join(radio: int, ns: str, ssid: str, freq_mhz: int, security: str) -> None:
    """wpa_supplicant for WPA2; an open BSS needs none, the kernel scans and associates by itself."""
    iface = f"wlan{radio}"
    if security == "open":
        with inside(ns):
            Nl80211().do(NL80211_CMD_CONNECT, attr(NL80211_ATTR_IFINDEX,
                                                   struct.pack("=I", socket.if_nametoindex(iface))),
                         attr(NL80211_ATTR_SSID, ssid.encode()),
                         attr(NL80211_ATTR_WIPHY_FREQ, struct.pack("=I", freq_mhz)),
                         attr(NL80211_ATTR_AUTH_TYPE, struct.pack("=I", 0)))
        return
    conf = f"/run/lab/{ns}.conf"
    write(
        conf,
        f'ctrl_interface=/run/lab/wpa-{ns}\nnetwork={{\n ssid="{ssid}"\n psk="{PASSPHRASE}"\n'
        f' scan_freq={freq_mhz}\n}}\n',
    )
    run(f"wpa_supplicant -B -i {iface} -c {conf} -P /run/lab/{ns}.wpa.pid", ns)


def leave(radio: int, ns: str, security: str) -> None:
    """Disassociate: say goodbye; with WPA2 wpa_supplicant does, and ends."""
    if security == "open":
        with inside(ns):
            Nl80211().do(NL80211_CMD_DISCONNECT,
                         attr(NL80211_ATTR_IFINDEX, struct.pack("=I", socket.if_nametoindex(f"wlan{radio}"))))
        return
    with open(f"/run/lab/{ns}.wpa.pid") as f:
        run(f"kill {f.read().strip()}")


def wait_associated(iface: str, ns: str | None, count: int, again, timeout_s: float = 60) -> None:
    """Until so many stations are authorized. again(addresses that are): once a second, for stations whose scan missed
    the beacon.
    """
    end, retry_s = time.monotonic() + timeout_s, time.monotonic() + 1
    with inside(ns):
        nl80211, index = Nl80211(), socket.if_nametoindex(iface)
    while time.monotonic() < end:
        found = [attrs(body) for _, body in messages(nl80211.command(NL80211_CMD_GET_STATION, index), 4)]
        infos = {top[NL80211_ATTR_MAC].hex(":"): attrs(top[NL80211_ATTR_STA_INFO]) for top in found}
        joined = {
            mac for mac, info in infos.items()
            if struct.unpack_from("=I", info.get(STA_INFO_FLAGS, bytes(8)), 4)[0] & STA_FLAG_AUTHORIZED
        }
        if len(joined) >= count:
            return
        if time.monotonic() >= retry_s:
            again(joined)
            retry_s += 1
        time.sleep(0.05)
    raise SystemExit(f"guest: {len(joined)} of {count} stations joined {iface} within {timeout_s} s")
