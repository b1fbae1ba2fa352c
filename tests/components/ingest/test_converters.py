"""What every stage of the index that reads files or their blocks keeps."""

import pytest

from shiguan.ingest.docx_file_to_document import DocxFileToDocument
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.ingest.epub_to_document import EPUBToDocument
from shiguan.ingest.html_page_to_document import HtmlPageToDocument
from shiguan.ingest.jsonl_to_document import JSONLToDocument
from shiguan.ingest.markdown_file_to_document import MarkdownFileToDocument
from shiguan.ingest.parent_child_splitter import ParentChildSplitter
from shiguan.ingest.pdf_to_document import PDFToDocument
from shiguan.ingest.source_inspector import SourceInspector

STAGES = [
    DocxFileToDocument, E5DocumentEmbedder, EPUBToDocument, HtmlPageToDocument, JSONLToDocument, MarkdownFileToDocument,
    PDFToDocument, ParentChildSplitter, SourceInspector,
]  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_gives_nothing(stage):
    assert not any(stage().run([]).values())
