import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PlainReply } from '../../inbound/calls/admission.ts'
import { DirectSink } from './direct-sink.ts'

/** A piece of an answer, and whether it comes in a later turn of the event loop than what is before it. */
interface Piece {
  readonly bytes: Uint8Array
  readonly isLater: boolean
}

const nobody = { onReady: () => {}, onGone: () => {} }
const lengths = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(8191, 8192, 8193, 70_000))
const piece = fc.record({
  bytes: lengths.chain(length => fc.uint8Array({ minLength: length, maxLength: length })),
  isLater: fc.boolean(),
})

let server: Server
let plan: { pieces: readonly Piece[]; headers: string[]; endsLater: boolean; bodyAfter?: Promise<void> }

beforeAll(async () => {
  server = createServer(async (_request, response) => {
    const sink = new DirectSink(new PlainReply(response))
    sink.begin(200, 'OK', plan.headers, nobody)
    if (plan.bodyAfter) await plan.bodyAfter
    for (const { bytes, isLater } of plan.pieces) {
      if (isLater) await nextTurn()
      sink.write(Buffer.from(bytes))
    }
    if (plan.endsLater) await nextTurn()
    sink.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

it('an answer arrives byte by byte as it was written, in however many pieces and turns of the event loop', async () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 4 }),
      fc.boolean(),
      fc.boolean(),
      async (pieces, isSized, endsLater) => {
        const body = Buffer.concat(pieces.map(({ bytes }) => bytes))
        plan = { pieces, endsLater, headers: isSized ? ['content-length', String(body.length)] : [] }
        const answer = await fetch(url)
        expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true)
      },
    ),
    { numRuns: 60 },
  )
})

it('headers do not wait for the first byte of the body', async () => {
  let sendBody = (): void => {}
  const bodyAfter = new Promise<void>(resolve => {
    sendBody = resolve
  })
  plan = { pieces: [{ bytes: Buffer.from('later'), isLater: false }], headers: [], endsLater: false, bodyAfter }
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  sendBody()
  expect(await answer.text()).toBe('later')
})
