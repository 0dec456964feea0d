import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readServerEvents, type ServerEvent } from './server-events.ts'

async function read(chunks: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
  const all: ServerEvent[] = []
  for await (const event of readServerEvents(stream)) all.push(event)
  return all
}

const bytes = (text: string) => new TextEncoder().encode(text)

describe('server-sent events', () => {
  it('server-sent events are read by name, and comments and unknown fields are ignored', async () => {
    const text =
      'retry: 2000\n\n:\n\nevent: figures\ndata: {"a":1}\n\ndata: one\ndata: two\n\nevent: rules\ndata: {}\n\n'
    expect(await read([bytes(text)])).toEqual([
      { name: 'figures', data: '{"a":1}' },
      { name: 'message', data: 'one\ntwo' },
      { name: 'rules', data: '{}' },
    ])
  })

  it('an event that is cut off by the end of the stream is ignored', async () => {
    expect(await read([bytes('event: figures\ndata: {"a":')])).toEqual([])
  })

  it('server-sent events are the same however the stream is split into chunks', async () => {
    const text = 'event: figures\ndata: {"name":"猎人 🏹"}\n\n:\n\nevent: status\ndata: {}\n\n'
    const whole = await read([bytes(text)])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes(text).length), { maxLength: 8 }), async cuts => {
        const at = [0, ...cuts.sort((a, b) => a - b), bytes(text).length]
        const chunks = at.slice(1).map((end, index) => bytes(text).subarray(at[index]!, end))
        expect(await read(chunks)).toEqual(whole)
      }),
    )
  })

  it('an event without an end is discarded', async () => {
    const endless = Array.from({ length: 9 }, () => bytes('x'.repeat(1_000_000)))
    await expect(read(endless)).rejects.toThrow('an event without end')
  })
})
