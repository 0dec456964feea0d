/**
 * A stand-in for an LLM API, which streams as the real ones do and uses as many tokens as it is asked for. Start it with
 * `node examples/llm/server.mjs`; without PORT it listens on 4000.
 *
 * - `POST /v1/chat/completions` answers as OpenAI does, `POST /v1/messages` as Anthropic does.
 * - The header `x-behave` makes it misbehave: `error` (500), `hang` (never answers), `break` (breaks its stream off), `silent` (reports no
 *   usage), `slow` (a token every 50 ms).
 */
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const words = 'All work and no play makes Jack a dull boy, é and 漢字 included. '.split(/(?<= )/)

/** The tokens of a request: about four bytes each. */
const inputTokens = body => Math.ceil(body.length / 4)

export function createLlmServer() {
  return createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray())
    const behave = request.headers['x-behave']
    let asked
    try {
      asked = JSON.parse(text.toString())
    } catch {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"not JSON"}}')
      return
    }
    if (behave === 'hang') return
    if (behave === 'error') {
      response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"out of order"}}')
      return
    }
    const form = request.url === '/v1/messages' ? anthropic : openai
    // as many tokens as may be used, but for tests of others
    const output = asked.use ?? asked.max_tokens ?? asked.max_completion_tokens ?? 16
    const used = { input: inputTokens(text), output }
    if (asked.stream) await stream(response, form, used, behave)
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(form.whole(said(output), used)))
  })
}

async function stream(response, form, used, behave) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const send = event => {
    const bytes = Buffer.from(event)
    // in two pieces, as networks cut them
    response.write(bytes.subarray(0, bytes.length >> 1))
    return response.write(bytes.subarray(bytes.length >> 1))
  }
  for (const event of form.first(used)) send(event)
  for (let at = 0; at < used.output; at++) {
    if (response.destroyed) return
    if (behave === 'break' && at === used.output >> 1) return void response.destroy()
    const flows = send(form.token(words[at % words.length]))
    if (behave === 'slow') await pause(50)
    else if (!flows) await drained(response)
  }
  for (const event of behave === 'silent' ? [] : form.last(used)) send(event)
  response.end()
}

function drained(response) {
  return new Promise(resolve => {
    const goOn = () => {
      response.off('drain', goOn).off('close', goOn)
      resolve()
    }
    response.on('drain', goOn).on('close', goOn)
  })
}

function said(tokens) {
  return Array.from({ length: tokens }, (_, at) => words[at % words.length]).join('')
}

const data = event => `data: ${JSON.stringify(event)}\n\n`
const named = event => `event: ${event.type}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`

const openai = {
  whole: (content, used) => ({
    object: 'chat.completion',
    choices: [{ message: { role: 'assistant', content } }],
    usage: openai.usage(used),
  }),
  usage: ({ input, output }) => ({ prompt_tokens: input, completion_tokens: output, total_tokens: input + output }),
  first: () => [],
  token: content => data({ object: 'chat.completion.chunk', choices: [{ delta: { content } }], usage: null }),
  last: used => [data({ object: 'chat.completion.chunk', choices: [], usage: openai.usage(used) }), 'data: [DONE]\n\n'],
}

const anthropic = {
  whole: (text, used) => ({
    type: 'message',
    content: [{ type: 'text', text }],
    usage: { input_tokens: used.input, output_tokens: used.output },
  }),
  first: ({ input }) => [
    named({ type: 'message_start', message: { usage: { input_tokens: input, output_tokens: 1 } } }),
  ],
  token: text => named({ type: 'content_block_delta', delta: { type: 'text_delta', text } }),
  last: ({ output }) => [
    named({ type: 'message_delta', usage: { output_tokens: output } }),
    named({ type: 'message_stop' }),
  ],
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const server = createLlmServer()
  server.listen(Number(process.env.PORT ?? 4000), '127.0.0.1', () => {
    console.log(`a stand-in for an LLM API listens on http://127.0.0.1:${server.address().port}`)
  })
}
