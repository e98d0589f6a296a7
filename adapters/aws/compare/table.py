"""Prints one row of the comparison from the limiter's logs, one for each run: NAME COPIES [--check SHARE SECONDS] LOG...

Medians, and the range of more than one run. With a check, fails if not everything was copied in each run, if more than
SHARE percent were throttled, or if it took more than 1.1 times SECONDS, by the medians.
"""

import sys
from statistics import median

name, copies, logs = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
check = None
if logs[0] == "--check":
    check, logs = (float(logs[1]), float(logs[2])), logs[3:]


def counted(log: str) -> tuple[int, int, float, float, int]:
    with open(log, encoding="ascii") as lines:
        # haproxy also says that it has started.
        words = [line.split() for line in lines]
    requests = [(float(line[0]), line[1]) for line in words if len(line) == 2]
    first = min(time for time, _ in requests)
    seconds = max(time for time, _ in requests) - first
    copied = sum(status == "200" for _, status in requests)
    throttled = sum(status == "503" for _, status in requests)
    # Whole seconds only: the last one is cut short.
    served = [0] * max(int(seconds), 1)
    for time, status in requests:
        if status == "200" and time - first < len(served):
            served[int(time - first)] += 1
    return copied, len(requests), 100 * throttled / len(requests), seconds, min(served)


copied, requests, shares, times, fewest = zip(*map(counted, logs))


def shown(values, form: str) -> str:
    middle = format(median(values), form)
    least, most = format(min(values), form), format(max(values), form)
    return middle if least == most else f"{middle} ({least} to {most})"


failed = [copies - number for number in copied]
print(
    f"| {name} | {shown(copied, ',.0f')} | {shown(failed, ',.0f')} | {shown(requests, ',.0f')} |"
    f" {shown(shares, '.2f')} % | {shown(times, '.1f')} | {shown(fewest, '.0f')} |"
)
if check:
    share, seconds = check
    if min(copied) != copies or median(shares) > share or median(times) > 1.1 * seconds:
        sys.exit(f"{name}: not all copied, more than {share:g} % throttled, or more than 1.1 times {seconds:g} s")
