import { jsonNumbersAtEnd, merged } from './json-end.ts'
import { type JsonNumbers, type JsonPath, jsonNumbers, pathTree } from './json-numbers.ts'

const NOTHING: JsonNumbers = { numbers: [], end: 'whole' }
const lineEnds = /\r\n|\n|\r/

/** The form of the events of a stream: server-sent events, or one JSON value a line. */
export type EventForm = 'server-sent' | 'lines'

export interface EventPart {
  readonly form: EventForm
  /** True if the part is the beginning of the stream; otherwise its first event is taken for the rest of one. */
  readonly isFirst: boolean
  /** Each event that matters has one of these names; all others are skipped, which are most of a stream. */
  readonly hints: readonly string[]
}

/** Reads numbers out of the events in a part of a stream. Counts in streams grow, so of several the largest is taken. */
export function eventNumbers(
  bytes: Buffer,
  paths: readonly JsonPath[],
  { form, isFirst, hints }: EventPart,
): JsonNumbers {
  const places = hints.map(hint => bytes.indexOf(hint)).filter(place => place >= 0)
  if (places.length === 0) return NOTHING
  const start = eventBefore(bytes, Math.min(...places), form)
  const isWhole = isFirst || start > 0
  const tree = pathTree(paths)
  let found = NOTHING
  eventsOf(bytes.subarray(start), form, isWhole).forEach((data, index) => {
    if (!hints.some(hint => data.includes(hint))) return
    const event = Buffer.from(data, 'latin1')
    const read = index === 0 && !isWhole ? jsonNumbersAtEnd(event, paths) : jsonNumbers(event, tree)
    if (read?.end === 'whole') found = merged(found, read)
  })
  return found
}

/** Returns where the event begins that `place` is in; 0 if it began before the part. */
function eventBefore(bytes: Buffer, place: number, form: EventForm): number {
  const ends = form === 'lines' ? ['\n'] : ['\n\n', '\r\n\r\n', '\r\r']
  return Math.max(
    ...ends.map(end => {
      const at = bytes.lastIndexOf(end, place)
      return at < 0 ? 0 : at + end.length
    }),
  )
}

/** Returns the data of each event. One byte is one character, so that a cut inside a character does no harm. */
function eventsOf(bytes: Buffer, form: EventForm, isFirst: boolean): string[] {
  const lines = bytes.toString('latin1').split(lineEnds)
  if (form === 'lines') return lines
  const events: string[] = []
  let data: string[] = []
  lines.forEach((line, index) => {
    if (line === '') {
      events.push(data.join('\n'))
      data = []
    } else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
    // the rest of a line that began before the part
    else if (index === 0 && !isFirst) data.push(line)
  })
  events.push(data.join('\n'))
  return events
}
