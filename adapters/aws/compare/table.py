"""Prints one row of the comparison from the proxy's log: LOG NAME COPIES [--check RATE].

With a rate, fails if not everything was copied, if more than 1 % was throttled, or if a second is near zero: less than a
quarter of the rate.
"""

import sys

log, name, copies = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(log, encoding="ascii") as lines:
    requests = [(float(time), status) for time, status in map(str.split, lines)]

first = min(time for time, _ in requests)
seconds = max(time for time, _ in requests) - first
copied = sum(status == "200" for _, status in requests)
throttled = sum(status == "503" for _, status in requests)
# Whole seconds only: the last one is cut short.
served = [0] * max(int(seconds), 1)
for time, status in requests:
    if status == "200" and time - first < len(served):
        served[int(time - first)] += 1

share = 100 * throttled / len(requests)
print(
    f"| {name} | {copied:,} | {copies - copied:,} | {len(requests):,} | {share:.2f} % |"
    f" {seconds:.1f} | {min(served)} |"
)
if "--check" in sys.argv:
    fewest = int(sys.argv[-1]) / 4
    if copied != copies or share > 1.0 or min(served) < fewest:
        sys.exit(f"{name}: not all copied, more than 1 % throttled, or a second with fewer than {fewest:.0f} copies")
