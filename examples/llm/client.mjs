// A streaming client of the gateway: prints what it is sent, and what is left of its budget. Run it several times:
// `node examples/llm/client.mjs`, or `node examples/llm/client.mjs 500` for an answer of 500 tokens.
const url = process.env.GATEWAY ?? 'http://127.0.0.1:8080'
const response = await fetch(`${url}/v1/chat/completions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': 'ann' },
  body: JSON.stringify({ model: 'stand-in', stream: true, max_tokens: Number(process.argv[2] ?? 100), messages: [] }),
})
for await (const piece of response.body) process.stdout.write(piece)
for (const [name, value] of response.headers) if (/ratelimit|retry-after/.test(name)) console.log(`${name}: ${value}`)
