export interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** More text than any event of ours has; a stream that goes on beyond it is none of ours. */
const LONGEST_EVENT = 8_000_000

/** Cuts a stream of text into server-sent events; comments only show that the other end lives. */
export async function* readServerEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  let rest = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      const blocks = (rest + decoder.decode(value, { stream: true }).replaceAll('\r\n', '\n')).split('\n\n')
      rest = blocks.pop() ?? ''
      if (rest.length > LONGEST_EVENT) throw new Error('an event without end')
      for (const block of blocks) {
        const event = parseBlock(block)
        if (event !== undefined) yield event
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

function parseBlock(block: string): ServerEvent | undefined {
  let name = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const [, field, text] = /^(\w+): ?(.*)$/.exec(line) ?? []
    if (field === 'event') name = text!
    if (field === 'data') data.push(text!)
  }
  return data.length === 0 ? undefined : { name, data: data.join('\n') }
}
