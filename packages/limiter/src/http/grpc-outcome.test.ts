import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GrpcOutcome } from './grpc-outcome.ts'

const outcomeOf = (headers: Record<string, string>) => GrpcOutcome.of(name => headers[name])
const frame = (flag: number, body: Buffer | string): Buffer => {
  const bytes = Buffer.from(body as string)
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([prefix, bytes])
}

describe('the outcome of an answer of gRPC', () => {
  it.each([
    ['application/grpc', true],
    ['application/grpc+proto', true],
    ['Application/gRPC; charset=utf-8', true],
    ['application/grpc-web', true],
    ['application/grpc-web-text+proto', true],
    ['application/grpcx', false],
    ['application/json', false],
    ['text/html', false],
  ])('the content type %s is one of gRPC: %s', (type, isGrpc) => {
    expect(outcomeOf({ 'content-type': type }) !== undefined).toBe(isGrpc)
    expect(outcomeOf({})).toBeUndefined()
  })

  it.each([
    ['0', 200],
    ['16', 401],
    ['7', 403],
    ['5', 404],
    ['8', 429],
    ['14', 503],
    [' 0 ', 200],
    ['00', 200],
    ['17', 500],
    ['-0', 500],
    ['0.0', 500],
    ['OK', 500],
    ['', 500],
    ['0, 16', 500],
  ])('grpc-status %j stands for %i, in headers and in trailers', (text, status) => {
    expect(outcomeOf({ 'content-type': 'application/grpc', 'grpc-status': text })!.status).toBe(status)
    const trailed = outcomeOf({ 'content-type': 'application/grpc' })!
    trailed.trailer('Grpc-Status', text)
    expect(trailed.status).toBe(status)
  })

  it('an answer without a grpc-status has failed', () => {
    expect(outcomeOf({ 'content-type': 'application/grpc' })!.status).toBe(500)
    expect(outcomeOf({ 'content-type': 'application/grpc-web' })!.status).toBe(500)
  })

  it('the trailers of gRPC-Web are found in its body, however the body is cut into pieces', () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 })
    const isText = fc.constantFrom('no', 'one text', 'a text for each frame')
    fc.assert(
      fc.property(messages, fc.nat(16), fc.integer({ min: 1, max: 30 }), isText, (bodies, code, size, form) => {
        const frames = [
          ...bodies.map(body => frame(0, Buffer.from(body))),
          frame(0x80, `grpc-message:no grpc-status: 0\r\ngrpc-status: ${code}\r\n`),
        ]
        const bytes =
          form === 'no'
            ? Buffer.concat(frames)
            : Buffer.from(
                form === 'one text'
                  ? Buffer.concat(frames).toString('base64')
                  : frames.map(one => one.toString('base64')).join(''),
              )
        const type = form === 'no' ? 'application/grpc-web+proto' : 'application/grpc-web-text'
        const outcome = outcomeOf({ 'content-type': type })!
        for (let at = 0; at < bytes.length; at += size) outcome.add(bytes.subarray(at, at + size))
        const plain = outcomeOf({ 'content-type': 'application/grpc', 'grpc-status': String(code) })!
        expect(outcome.status).toBe(plain.status)
      }),
      { numRuns: 200 },
    )
  })

  it('a body that is not one of gRPC-Web has failed, and is read without an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.boolean(), (bytes, isText) => {
        const outcome = outcomeOf({ 'content-type': isText ? 'application/grpc-web-text' : 'application/grpc-web' })!
        outcome.add(bytes)
        expect(outcome.status).toBe(500)
      }),
      { numRuns: 200 },
    )
  })
})
