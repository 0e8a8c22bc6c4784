"""What a folder holds, and until when."""
from oal_pki import masters, names
from oal_pki.authority import alternative_names, load_certificates, now
from oal_pki.folder import Folder


def certificates(folder: Folder) -> list[dict]:
    """One entry a certificate of pki/: file, subject, names, issuer, not_after, days_left."""
    rows = []
    for file in sorted(folder.pki.glob("*.crt")):
        for number, certificate in enumerate(load_certificates(file)):
            if number and file.name != "ca.crt":
                break  # the chain: it has a file of its own
            rows.append({
                "file": file.name,
                "subject": certificate.subject.rfc4514_string(),
                "issuer": names.common_name(certificate.issuer),
                "names": [str(name.value) for name in alternative_names(certificate)],
                "not_after": certificate.not_valid_after_utc.isoformat(timespec="seconds"),
                "days_left": (certificate.not_valid_after_utc - now()).days,
            })
    return rows


def text(folder: Folder, rows: list[dict]) -> str:
    """What `certificates` told, and the masters, for people."""
    width = max(len(row["file"]) for row in rows)
    lines = [f"{row['file']:{width}}  {row['not_after'][:10]}  {row['days_left']:>5} days  {row['subject']}"
             f"{'  for ' + ', '.join(row['names']) if row['names'] else ''}  by {row['issuer']}" for row in rows]
    return "\n".join([*lines, f"master keys of batches: {', '.join(map(str, sorted(masters.read(folder))))}", ""])
