"""Writes what addresses.txt has: keys of calls, KEY lengths, and the network by Python's ipaddress.

Each line has the key in hex, the lengths for IPv4 and IPv6, and the text of the network, "-" for no address or
"wide". Run: python3 addresses.py > addresses.txt
"""

import ipaddress
import random
import re

LONGEST = 128


def decimal(text, most):
    return re.fullmatch("[0-9]+", text) is not None and int(text) <= most


def unmapped(number, bits):
    """Returns the family, the number and the length of an IPv6 network, as IPv4 if it is IPv4-mapped."""
    if bits >= 96 and number >> 32 == 0xFFFF:
        return 4, number & 0xFFFFFFFF, bits - 96
    return 6, number, bits


def parse(text):
    """Returns the family, the number and the length of the address or network text, or None."""
    if len(text) > LONGEST:
        return None
    if "/" in text:
        host, _, length = text.partition("/")
        if "%" in host or not re.fullmatch("0|[1-9][0-9]?[0-9]?", length):
            return None
        address = ipaddress.ip_address(host)
        bits = int(length)
        if bits > address.max_prefixlen:
            return None
        return (4, int(address), bits) if address.version == 4 else unmapped(int(address), bits)
    six = re.fullmatch(r"\[(.*)\](?::(.*))?", text, re.DOTALL)
    if six:
        text, port = six.groups()
        if port is not None and not decimal(port, 65535):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not decimal(port, 65535):
            return None
    text, percent, zone = text.partition("%")
    if percent and not zone:
        return None
    address = ipaddress.ip_address(text)
    if address.version == 4:
        return None if six or percent else (4, int(address), 32)
    return unmapped(int(address), 128)


def network(text, v4, v6):
    try:
        found = parse(text)
    except ValueError:
        return "-"
    if found is None:
        return "-"
    family, number, bits = found
    want = v4 if family == 4 else v6
    if bits < want:
        return "wide"
    kind = ipaddress.IPv4Network if family == 4 else ipaddress.IPv6Network
    return str(kind((number, want), strict=False))


HOSTILE = """
10.0.0.7 10.0.0.7:443 10.0.0.7: 10.0.0.7:+1 10.0.0.7:65535 10.0.0.7:65536 10.0.0.7:0080 :443 : :: ::1 [::1] [::1]:443
[::1]: [::1]:x [::1 ::1] [] [ ] [[::1]] [::1]]:1 [10.0.0.7] [10.0.0.7]:1 [::ffff:10.0.0.7]:1 ::ffff:10.0.0.7
::FFFF:a00:7 ::ffff:0:10.0.0.7 ::10.0.0.7 64:ff9b::10.0.0.7 2002:a00:7:: fe80::1%eth0 fe80::1% fe80::1%25eth0 fe80::1%a%b
fe80::1%a/64 [fe80::1%eth0]:80 [fe80::1%eth0] [fe80::1%]:80 %eth0 10.0.0.7%eth0 ::ffff:10.0.0.7%eth0 010.0.0.7 10.0.0.07
0x0a.0.0.7 10.7 167772167 10.0.0.256 10.0.0 10.0.0.0.7 10..0.7 .10.0.0.7 10.0.0.7. 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9
1::2::3 ::: 1:2:3:4:5:6:7:: ::2:3:4:5:6:7:8 1:2:3:4::5:6:7:8 12345:: g:: 1:2:3:4:5:6:1.2.3.4 1:2:3:4:5:6:7:1.2.3.4 ::1.2.3.4:5
10.0.0.0/24 10.0.0.9/24 10.0.0.0/8 10.0.0.0/32 10.0.0.0/33 10.0.0.0/ 10.0.0.0/024 10.0.0.0/+24 10.0.0.0/-1 10.0.0.0/24/24
10.0.0.0/255.255.255.0 /24 ::/0 ::/128 ::/129 0.0.0.0/0 ::ffff:10.0.0.0/120 ::ffff:10.0.0.0/96 ::ffff:10.0.0.0/95 ::ffff:0:0/96
[::1]/64 ::1/64:80 10.0.0.0:80/24 2001:db8::/56 2001:db8::/48 2001:DB8:0:ff::1 0:0:0:0:0:ffff:102:304 1:0:0:2:0:0:0:3 1:0:2:3:4:5:6:7
0.0.0.0 255.255.255.255 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255 localhost *
""".split()
HOSTILE += ["", " 10.0.0.7", "10.0.0.7 ", "10.0.0.7\n", "10.0.0.7\0", "\u0661\u0660.0.0.7", "::\uff11", "10.0.0.7:\u0661"]
HOSTILE += ["fe80::1%" + "z" * 120, "fe80::1%" + "z" * 121, "fe80::1%\xff\0\n]", "[fe80::1%a]:b]:80", "0" * 200]
LENGTHS = [(32, 128), (32, 56), (24, 48), (0, 0), (1, 1), (31, 127), (8, 96), (25, 97)]
CHARACTERS = "0123456789abcdefABCDEF.:/[]%:.0 g"


def main():
    rng = random.Random(30)
    texts = list(HOSTILE)
    for _ in range(400):
        v4 = str(ipaddress.IPv4Address(rng.getrandbits(32)))
        v6 = ipaddress.IPv6Address(rng.getrandbits(128) & (rng.getrandbits(128) | rng.getrandbits(128)))
        v6 = rng.choice([str(v6), v6.exploded, str(v6).upper(), "::ffff:" + v4, "::" + v4])
        texts += [v4, v6, f"{v4}/{rng.randrange(33)}", f"{v6}/{rng.randrange(129)}", f"[{v6}]:{rng.randrange(65536)}", f"{v6}%{rng.randrange(9)}"]
    for text in rng.choices(texts, k=2000):
        at = rng.randrange(len(text) + 1)
        texts.append(text[:at] + rng.choice(["", rng.choice(CHARACTERS)]) + text[at + rng.randrange(2):])
    for text in texts:
        v4, v6 = rng.choice(LENGTHS)
        print(text.encode().hex() or '""', v4, v6, network(text, v4, v6))


main()
