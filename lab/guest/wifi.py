"""Access points, stations and neighbour BSSs: hostapd and wpa_supplicant on hwsim radios.

Radio numbers: APs first, then stations, then neighbours. An hwsim radio N has the address 02:00:00:00:NN:00.
"""
import time

from .sh import run, write

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
        lines = f"hw_mode=g\nchannel={number}\nieee80211n=1\nbasic_rates=60 120 240\nsupported_rates=60 90 120 180 240 360 480 540\n"
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


def start_ap(medium: dict, iface: str, ssid: str, ns: str | None, bridge: str | None) -> None:
    """One WPA2 BSS with BSS-load element, hostapd in the background."""
    conf = f"/run/lab/hostapd-{ns or 'ap'}.conf"
    write(conf, f"interface={iface}\ndriver=nl80211\nssid={ssid}\n" + channel_lines(medium) +
          "wmm_enabled=1\nbeacon_int=100\nap_max_inactivity=3600\ndisassoc_low_ack=0\n"
          f"wpa=2\nwpa_passphrase={PASSPHRASE}\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\n"
          f"bss_load_update_period=100\nctrl_interface=/run/lab/hostapd-{ns or 'ap'}\n" +
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


def start_station(radio: int, ns: str, ssid: str, freq_mhz: int) -> None:
    """Move the radio to the station's namespace and let wpa_supplicant join the BSS."""
    run(f"iw phy phy{radio} set netns name {ns}")
    iface = f"wlan{radio}"
    run(f"ethtool -K {iface} tso off gso off gro off", ns, check=False)
    join(radio, ns, ssid, freq_mhz)


def join(radio: int, ns: str, ssid: str, freq_mhz: int) -> None:
    iface = f"wlan{radio}"
    conf = f"/run/lab/{ns}.conf"
    write(conf, f'ctrl_interface=/run/lab/wpa-{ns}\nnetwork={{\n ssid="{ssid}"\n psk="{PASSPHRASE}"\n scan_freq={freq_mhz}\n}}\n')
    run(f"wpa_supplicant -B -i {iface} -c {conf} -P /run/lab/{ns}.wpa.pid", ns)


def leave(ns: str) -> None:
    """Disassociate: wpa_supplicant ends and says goodbye."""
    with open(f"/run/lab/{ns}.wpa.pid") as f:
        run(f"kill {f.read().strip()}")


def wait_associated(iface: str, ns: str | None, count: int, timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        dump = run(f"iw dev {iface} station dump", ns)
        if dump.count("authorized:\tyes") >= count:
            return
        time.sleep(0.2)
    raise SystemExit(f"guest: {dump.count('authorized:	yes')} of {count} stations joined {iface} within {timeout_s} s")
