import { jsonNumbersAtEnd, merged } from './json-end.ts'
import { type JsonNumbers, type JsonPath, jsonNumbers, pathTree } from './json-numbers.ts'

const NOTHING: JsonNumbers = { numbers: [], end: 'whole' }
const lineEnds = /\r\n|\n|\r/

/** How the events of a stream are written: server-sent events, or one JSON value a line. */
export type EventForm = 'server-sent' | 'lines'

/**
 * Reads numbers out of the events in a part of a stream. Counts in streams grow, so of several the largest is taken. `isFirst`
 * says that the part is the beginning of the stream; otherwise its first event is taken for the rest of one.
 */
export function eventNumbers(
  bytes: Buffer,
  paths: readonly JsonPath[],
  { form, isFirst }: { readonly form: EventForm; readonly isFirst: boolean },
): JsonNumbers {
  const hints = [...new Set(paths.map(path => path.at(-1)!))]
  if (!hints.some(hint => bytes.includes(hint))) return NOTHING
  const tree = pathTree(paths)
  let found = NOTHING
  eventsOf(bytes, form, isFirst).forEach((data, index) => {
    if (!hints.some(hint => data.includes(hint))) return
    const event = Buffer.from(data, 'latin1')
    const isCut = index === 0 && !isFirst
    const read = isCut ? jsonNumbersAtEnd(event, paths) : jsonNumbers(event, tree)
    if (read?.end === 'whole') found = merged(found, read)
  })
  return found
}

/** The data of each event. One byte is one character, so that a cut inside a character does no harm. */
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
