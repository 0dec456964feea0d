import * as known from './fields.ts'
import { type LineReader, type LogEntry, type LogFormat, newEntry } from './format.ts'
import { parseDurationUs, parseIsoTime } from './times.ts'

type Writer = known.FieldWriter

const plain: Readonly<Record<string, known.Field>> = {
  ...{ 'c-ip': known.peer, 'cs-method': known.method, 'cs-uri-stem': known.target, 'cs-uri-query': known.query },
  ...{ 'cs-uri': known.target, 'sc-status': known.status, 'cs-username': known.user, 'cs-host': known.host },
  ...{ 'cs(host)': known.host, 'x-host-header': known.host, 'x-forwarded-for': known.header('x-forwarded-for') },
}

/** Reads logs that say by `#Fields:` what they contain: W3C, as IIS writes them, and CloudFront's, with tabs. */
class W3cReader implements LineReader {
  readonly format: string
  readonly fields: Set<string> = new Set(['ip', 'path', 'method'])
  readonly tickUs = 1_000_000
  readonly time = 'end'
  readonly #isCloudFront: boolean
  #writers: readonly (Writer | 'date' | 'time')[] = []

  constructor(isCloudFront: boolean, directive: string) {
    this.#isCloudFront = isCloudFront
    this.format = isCloudFront ? 'cloudfront' : 'w3c'
    this.#follow(directive)
  }

  read(line: string, entry: LogEntry): boolean | undefined {
    if (line.charCodeAt(0) === 0x23) {
      if (line.startsWith('#Fields:')) this.#follow(line)
      return undefined
    }
    const values = line.split(this.#isCloudFront ? '\t' : ' ')
    if (values.length < this.#writers.length) return false
    let date = ''
    let time = ''
    for (let i = 0; i < this.#writers.length; i++) {
      const writer = this.#writers[i]!
      if (writer === 'date') date = values[i]!
      else if (writer === 'time') time = values[i]!
      else if (!writer(entry, values[i]!)) return false
    }
    entry.at = parseIsoTime(`${date}T${time}`)
    return entry.at >= 0 && entry.target !== ''
  }

  #follow(directive: string): void {
    const names = directive.slice('#Fields:'.length).trim().toLowerCase().split(/\s+/)
    this.#writers = names.map(name => this.#writerOf(name))
  }

  #writerOf(name: string): Writer | 'date' | 'time' {
    if (name === 'date' || name === 'time') return name
    const field = plain[name] ?? this.#headerOf(name)
    if (name === 'time-taken') {
      this.fields.add('duration')
      const unitUs = this.#isCloudFront ? 1e6 : 1000
      return (entry, text) => {
        entry.durationUs = parseDurationUs(text, unitUs)
        return true
      }
    }
    if (field.name !== undefined) this.fields.add(field.name)
    return this.#isCloudFront || name.startsWith('cs(')
      ? (entry, text) => field.write(entry, this.#decoded(text))
      : field.write
  }

  #headerOf(name: string): known.Field {
    const header = /^cs\((.+)\)$/.exec(name)?.[1]
    return header === undefined ? known.skip : known.header(header)
  }

  /** Decodes a text: CloudFront encodes spaces and other signs of headers; IIS writes spaces as plus signs. */
  #decoded(text: string): string {
    if (!this.#isCloudFront) return text.replaceAll('+', ' ')
    if (!text.includes('%')) return text
    try {
      return decodeURIComponent(text)
    } catch {
      return text
    }
  }
}

export const w3cFormat: LogFormat = {
  name: 'w3c',
  recognize: lines => {
    const directive = lines.find(line => line.startsWith('#Fields:'))
    if (directive === undefined) return undefined
    const rows = lines.filter(line => !line.startsWith('#'))
    const reader = new W3cReader(
      rows.some(line => line.includes('\t')),
      directive,
    )
    return rows.length === 0 || rows.some(line => reader.read(line, newEntry())) ? reader : undefined
  },
}
