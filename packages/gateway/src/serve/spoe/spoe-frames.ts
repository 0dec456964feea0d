import { SpoeError, SpoeReader, type SpoeValue, SpoeWriter } from './spoe-bytes.ts'

/** The types of frames. */
export const frameType = {
  hello: 1,
  disconnect: 2,
  notify: 3,
  agentHello: 101,
  agentDisconnect: 102,
  ack: 103,
} as const

const final = 1
const setVariable = 1
const transaction = 2
const maxMessages = 16
const maxArguments = 64

export interface SpoeFrame {
  readonly type: number
  readonly stream: number
  readonly frame: number
  readonly reader: SpoeReader
}

/** Reads the head of a frame, without its length. */
export function readFrame(bytes: Buffer): SpoeFrame {
  if (bytes.length < 5) throw new SpoeError('a frame ends too early')
  if ((bytes.readUInt32BE(1) & final) === 0) throw new SpoeError('frames in pieces are not read')
  const reader = new SpoeReader(bytes, 5)
  return { type: bytes[0]!, stream: reader.varint(), frame: reader.varint(), reader }
}

/** Returns a list of names and values, up to the end of the frame. */
export function readValues(reader: SpoeReader): Map<string, SpoeValue> {
  const values = new Map<string, SpoeValue>()
  while (!reader.isAtEnd && values.size < maxArguments) values.set(reader.text(), reader.value())
  return values
}

/** Returns the arguments of the messages in a NOTIFY frame, together. */
export function readArguments(reader: SpoeReader): Map<string, SpoeValue> {
  const values = new Map<string, SpoeValue>()
  for (let messages = 0; !reader.isAtEnd; messages++) {
    if (messages === maxMessages) throw new SpoeError('a frame has too many messages')
    reader.text()
    const count = reader.byte()
    for (let i = 0; i < count; i++) values.set(reader.text(), reader.value())
  }
  return values
}

export function agentHello(maxFrameBytes: number): Buffer {
  const writer = frameHead(frameType.agentHello, 0, 0)
  writer.text('version').value('2.0').text('max-frame-size').value(maxFrameBytes)
  return writer.text('capabilities').value('pipelining').frame()
}

export function agentDisconnect(status: number, message: string): Buffer {
  const writer = frameHead(frameType.agentDisconnect, 0, 0)
  return writer.text('status-code').value(status).text('message').value(message).frame()
}

/** Sets variables of the transaction that a NOTIFY frame was about. */
export function acknowledge(
  { stream, frame }: SpoeFrame,
  variables: Readonly<Record<string, string | number>>,
): Buffer {
  const writer = frameHead(frameType.ack, stream, frame)
  for (const [name, value] of Object.entries(variables)) {
    writer.byte(setVariable).byte(3).byte(transaction).text(name).value(value)
  }
  return writer.frame()
}

function frameHead(type: number, stream: number, frame: number): SpoeWriter {
  return new SpoeWriter().byte(type).byte(0).byte(0).byte(0).byte(final).varint(stream).varint(frame)
}
