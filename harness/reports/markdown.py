"""A gate as a comment for a pull request: GitHub's Markdown, safe to post whatever a SUT wrote into its messages."""

from __future__ import annotations

from typing import Final

import jinja2

from harness.reports.gated import Gated, expectation_lines
from harness.reports.plain import plain
from harness.reports.terminal import cut

_TEMPLATE: Final = """\
### poolparity gate: {{ gated.verdict }}

`{{ gated.base.name|code }}` → `{{ gated.head.name|code }}`

| platform |{% for verdict in verdicts %} {{ verdict }} |{% endfor %}

|---|{% for verdict in verdicts %}---:|{% endfor %}

{% for platform in gated.platforms -%}
| {{ platform }} |{% for verdict in verdicts %} {{ gated.counts(platform).get(verdict, "") }} |{% endfor %}

{% endfor %}
{% for entry in gated.notable() %}
<details{% if entry.verdict == "regression" and not entry.expectation %} open{% endif %}><summary>\
{{ entry.title|e }} x{{ entry.platforms.values()|sum }} on \
{{ entry.platforms|join(", ") }}\
{% if entry.location %} at <code>{{ entry.location|shown|e }}</code>{% endif %}</summary>

```text
{{ entry.message|block }}
```

{{ entry.step }}

{% for id in entry.ids|list|batch(5)|first %}
- `{{ id|code }}`
{% endfor %}
{% if entry.ids|length > 5 %}
- … and {{ entry.ids|length - 5 }} more
{% endif %}

</details>
{% endfor %}

{% for line in lines %}
- {{ line|e }}
{% endfor %}

bytes compared: base {{ "{:,}".format(gated.base_bytes) }}, head {{ "{:,}".format(gated.head_bytes) }}
"""


def rendered(gated: Gated) -> str:
    """Return the comment."""
    environment = jinja2.Environment(  # noqa: S701 - Markdown, escaped filter by filter
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    environment.filters.update(code=_code, block=_block, shown=plain)
    verdicts = list(gated.counts())
    return environment.from_string(_TEMPLATE).render(gated=gated, verdicts=verdicts, lines=expectation_lines(gated))


def _code(text: str) -> str:
    return plain(text).replace("`", "'").replace("|", "\\|").replace("\n", " ")


def _block(text: str) -> str:
    return "\n".join(cut(plain(text))).replace("```", "'''")
