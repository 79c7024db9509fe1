"""Make certificates for a cluster with TLS: an authority, a pair for scheduler and workers, and a pair for clients.

python cluster/make-certificates.py certificates/

The cluster accepts only pairs that this authority has signed, and so do clients. The authority's own key is discarded,
so nobody can sign more pairs; to add one, make all of them again. Needs the package cryptography.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PAIRS = ("cluster", "client")


def make_certificates(folder: Path, days: int) -> list[Path]:
    """Write ca.pem, and NAME.pem with NAME-key.pem for each pair; existing files are never replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["ca.pem", *(f"{pair}{end}" for pair in PAIRS for end in (".pem", "-key.pem"))]
    existing = [name for name in names if (folder / name).exists()]
    if existing:
        raise FileExistsError(f"{folder / existing[0]} exists; remove it, or give another folder")
    authority = ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("excir-authority", authority, "excir-authority", authority, days, ca=True)
    written = [_write(folder / "ca.pem", _pem(ca), 0o644)]
    for pair in PAIRS:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(f"excir-{pair}", key, "excir-authority", authority, days, ca=False)
        written.append(_write(folder / f"{pair}.pem", _pem(certificate), 0o644))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        written.append(_write(folder / f"{pair}-key.pem", private, 0o600))
    return written


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    days: int,
    ca: bool,
) -> x509.Certificate:
    now = datetime.datetime.now(tz=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # machines' clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, key_cert_sign=ca, crl_sign=ca, content_commitment=False, key_encipherment=False,
                data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )  # fmt: skip
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes, mode: int) -> Path:
    """Created with its permissions: a key that anybody could read for a moment is not a secret."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write them")
    parser.add_argument("--days", type=int, default=365, help="days until they expire (default 365)")
    arguments = parser.parse_args()
    try:
        for path in make_certificates(arguments.folder, arguments.days):
            print(path)
    except OSError as error:
        sys.exit(f"make-certificates: {error}")


if __name__ == "__main__":
    main()
