import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { randomRuns } from '@test/random-runs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRandom } from '../../fuzz/random.mjs'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { block, flags, frame, preface } from '../../helpers/http2-frames.ts'
import { build, startProgram } from '../../helpers/program-rig.ts'
import { startServe } from '../../serve/serve-rig.ts'

// Headers of HTTP/2 that Node rejects itself, such as those of a body that is shorter than its length, are given to no listener. Node has
// been seen to abort the process when it collected sessions with many of them; a small heap is collected often.

const rig = new GatewayRig()
const ended: Promise<number | null>[] = []
const ports = new Map<string, number>()
const rounds = randomRuns(8)

beforeAll(async () => {
  build()
  const { NODE_OPTIONS } = process.env
  process.env.NODE_OPTIONS = '--max-semi-space-size=1'
  const service = await rig.serve()
  const [gateway, serve] = await Promise.all([
    startProgram(rig, { gateway: { routes: [{ to: service.url }] } }, ['--admin-port', 'off']),
    startServe(rig, {}),
  ])
  if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS
  else process.env.NODE_OPTIONS = NODE_OPTIONS
  ended.push(gateway.ended, serve.ended)
  ports.set('the gateway', Number(new URL(gateway.url).port))
  ports.set('the HTTP port of serve', Number(new URL(serve.url).port))
  ports.set('the gRPC port of serve', Number(serve.grpc.split(':').at(-1)))
})
afterAll(() => rig.close())

const reset = Buffer.from([0, 0, 0, 8])

/** The frames of a connection whose streams have a length and no body, and are reset. */
function rejected(random: ReturnType<typeof createRandom>): Buffer[] {
  const headers = [
    ...[
      [':method', random.pick(['GET', 'POST'])],
      [':scheme', 'http'],
      [':authority', 'a.test'],
    ],
    ...[
      [':path', '/a'],
      ['content-length', random.pick(['2', '100', '9007199254740991'])],
    ],
  ] as [string, string][]
  const pieces = Array.from({ length: 400 }, (_, index) => {
    const hasLength = random.chance(0.4)
    const fields = block(hasLength ? headers : headers.slice(0, -1))
    const opened = frame('headers', flags.endHeaders | flags.endStream, 2 * index + 1, fields)
    return Buffer.concat([opened, frame('reset', 0, 2 * index + 1, reset)])
  })
  const cut = random.pick([400, 100, 10, 1])
  const written = [Buffer.concat([preface, frame('settings', 0, 0)])]
  for (let at = 0; at < pieces.length; at += cut) written.push(Buffer.concat(pieces.slice(at, at + cut)))
  return written
}

async function attack(port: number, random: ReturnType<typeof createRandom>): Promise<void> {
  const socket = connect(port, '127.0.0.1')
    .setNoDelay(true)
    .on('error', () => {})
    .resume()
  await once(socket, 'connect').catch(() => {})
  for (const bytes of rejected(random)) {
    if (!socket.writable) break
    socket.write(bytes)
    if (random.chance(0.1)) await pause(random.int(0, 10))
  }
  const departure = random.pick(['reset', 'close', 'end'])
  if (departure === 'reset') socket.resetAndDestroy()
  else if (departure === 'end') socket.end()
  else socket.destroy()
  await pause(departure === 'end' ? 200 : 0)
  socket.destroy()
}

test.each(['the gateway', 'the HTTP port of serve', 'the gRPC port of serve'])(
  '%s outlives sessions of HTTP/2 with many rejected headers',
  async name => {
    const random = createRandom(`rejected ${name}`)
    let hasEnded = false
    void Promise.race(ended).then(() => {
      hasEnded = true
    })
    for (let round = 0; round < rounds && !hasEnded; round++) {
      await Promise.all(Array.from({ length: 10 }, () => attack(ports.get(name)!, random)))
    }
    await pause(100)
    expect(hasEnded).toBe(false)
  },
)
