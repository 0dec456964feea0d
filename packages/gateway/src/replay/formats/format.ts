/** One line of a log, as far as rules can ask of it. Fields that the line does not have keep the values of `newEntry`. */
export interface LogEntry {
  /** Microseconds since 1970: when the request began, or ended if the reader says so. */
  at: number
  /** NaN if it is not known. */
  durationUs: number
  /** The address of the connection. */
  peer: string | undefined
  method: string
  /** The target as it came, with its query. */
  target: string
  status: number | undefined
  host: string | undefined
  user: string | undefined
  /** Names in lower case; undefined if the line has none. */
  headers: Record<string, string> | undefined
  /** Values of dimensions, as the gateway logs them. */
  attributes: Record<string, string> | undefined
  turn: number
  endTurn: number | undefined
  waitUs: number
  left: boolean
  /** The status by which rules judged its end, if it is not `status`: 0 if they did not know it. */
  outcome: number | undefined
  /** True if the gateway answered in place of a service. */
  own: boolean
  /** The gateway's decision, in its own log. */
  verdict: 'passed' | 'refused' | undefined
  rule: string | undefined
}

export function newEntry(): LogEntry {
  return {
    at: Number.NaN,
    durationUs: Number.NaN,
    peer: undefined,
    method: '',
    target: '',
    status: undefined,
    host: undefined,
    user: undefined,
    headers: undefined,
    attributes: undefined,
    turn: 0,
    endTurn: undefined,
    waitUs: 0,
    left: false,
    outcome: undefined,
    own: false,
    verdict: undefined,
    rule: undefined,
  }
}

/** Reads the lines of one log. */
export interface LineReader {
  readonly format: string
  /**
   * The fields that lines of this log have: `ip`, `user`, `host`, `status`, `duration`, `header:referer`, …; `headers` if any may
   * be there.
   */
  readonly fields: ReadonlySet<string>
  /** The precision of written moments, in microseconds; 1 means exactly. */
  readonly tickUs: number
  /** The moment of a request that is written. */
  readonly time: 'start' | 'end'
  /** Returns a reader that reads only some of the fields. */
  want?(isWanted: (name: string) => boolean): LineReader
  /** Fills in an entry; false if the line cannot be read. A line that says nothing of a request returns undefined. */
  read(line: string, entry: LogEntry): boolean | undefined
}

/** One format of logs. */
export interface LogFormat {
  readonly name: string
  /** Returns a reader for a log that begins with these lines; undefined if they are of another format. */
  recognize(lines: readonly string[]): LineReader | undefined
}

/** True if a reader reads most of the lines. */
export function readsMost(reader: LineReader, lines: readonly string[]): boolean {
  let good = 0
  let bad = 0
  for (const line of lines) {
    const read = reader.read(line, newEntry())
    if (read === true) good++
    else if (read === false) bad++
  }
  return good > 0 && good >= bad
}
