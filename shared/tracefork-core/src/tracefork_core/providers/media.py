"""Attachments in a message: inline, by address, or by the id of an uploaded file."""

from __future__ import annotations

from tracefork_core.providers.call import BlobPart, FilePart, UriPart


def from_url(url: str, modality: str, mime_type: str | None = None) -> BlobPart | UriPart:
    """Read an address; a base64 `data:` address holds the attachment itself."""
    header, comma, data = url.partition(",")
    if comma and header.startswith("data:") and header.endswith(";base64"):
        mime_type = header[len("data:") :].split(";")[0] or mime_type
        return from_base64(data, modality, mime_type)
    return UriPart(modality_of(mime_type, modality), mime_type, url)


def from_base64(data: str, modality: str, mime_type: str | None = None) -> BlobPart:
    """Read an inline attachment, whose type knows its modality better than its place does."""
    return BlobPart(modality_of(mime_type, modality), mime_type, data)


def from_file(file_id: str, modality: str, mime_type: str | None = None) -> FilePart:
    """Read a reference to a file uploaded before."""
    return FilePart(modality_of(mime_type, modality), mime_type, file_id)


def modality_of(mime_type: str | None, default: str) -> str:
    """Name the modality of a MIME type: image, video, audio or document."""
    kind = (mime_type or "").partition("/")[0]
    if kind in ("image", "video", "audio"):
        return kind
    return "document" if kind in ("text", "application") else default
