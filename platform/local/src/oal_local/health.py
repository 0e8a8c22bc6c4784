"""Is an HTTP service there and content?"""
import urllib.request


def ok(url: str) -> bool:
    """True when a GET answers with a status below 400."""
    try:
        with urllib.request.urlopen(url, timeout=3) as answer:
            return answer.status < 400
    except OSError:
        return False
