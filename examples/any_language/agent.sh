#!/bin/sh
# An agent without Python: two questions, the second with the first answer in it.
ask() {
  body=$(printf '{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "%s"}]}' "$1")
  curl -sSf "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
    -H "Content-Type: application/json" -d "$body" | sed 's/.*"content": *"\([^"]*\)".*/\1/'
}

team=$(ask "@say ${TEAM:-shipping}")
echo "for $team"
ask "@say Dear $team team: where is order 17?"
