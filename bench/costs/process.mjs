// One process of bench/costs/run.mjs: the service that streams, or a gateway in front of it.
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createGateway } from '../../packages/gateway/dist/gateway.js'
import { createLimiter } from '../../packages/limiter/dist/index.js'

const [kind, upstream] = process.argv.slice(2)

const plenty = '50000000/s'
const rules = {
  // the same rules, with a cost that is known from the start
  without: [
    { id: 'calls', limit: plenty },
    { id: 'tokens', limit: plenty, cost: 1000 },
  ],
  settling: [
    { id: 'calls', limit: plenty },
    {
      id: 'tokens',
      limit: plenty,
      cost: { reserve: { from: 'openai', plus: 'bytes/4', max: 8000 }, settle: { from: 'openai' } },
    },
  ],
}

/** An event stream of a megabyte, as an LLM API writes it; its last event reports the usage. */
function streamOf(bytes) {
  const event = `data: ${JSON.stringify({ choices: [{ delta: { content: 'token '.repeat(20) } }], usage: null })}\n\n`
  const usage = { prompt_tokens: 100, completion_tokens: 900, total_tokens: 1000 }
  const body = Buffer.from(event.repeat(Math.ceil(bytes / event.length)))
  const last = Buffer.from(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`)
  const pieces = []
  for (let at = 0; at < body.length; at += 16_384) pieces.push(body.subarray(at, at + 16_384))
  return [...pieces, last]
}

const stream = streamOf(1_048_576)

function serve() {
  return createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      let at = 0
      const send = () => {
        while (at < stream.length) if (!response.write(stream[at++])) return void response.once('drain', send)
        response.end()
      }
      send()
    })
  })
}

let server
let limiter
if (kind === 'service') server = serve().listen(0, '127.0.0.1', ready)
else {
  limiter = await createLimiter({ rules: rules[kind] })
  const gateway = await createGateway({ limiter, upstream })
  await gateway.listen({ port: 0, host: '127.0.0.1' })
  server = gateway.server
  ready()
}

function ready() {
  process.send(server.address().port)
}

process.on('message', async message => {
  if (message !== 'figures') process.exit()
  // streams that the load has cut off are over by then
  await pause(300)
  globalThis.gc?.()
  const { user, system } = process.cpuUsage()
  process.send({ cpuUs: user + system, ...process.memoryUsage(), settled: limiter?.stats?.().rules.at(-1)?.settled })
})
process.on('disconnect', () => process.exit())
