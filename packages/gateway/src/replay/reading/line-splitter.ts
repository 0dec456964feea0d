/** Longer lines are cut: no server writes them, and a file without line breaks must not fill the memory. */
const MAX_LINE = 65_536

/** Splits chunks of text into lines. */
export class LineSplitter {
  #rest = ''
  #isCut = false

  /** Calls `onLine` for each line that is complete; it may return false to stop. */
  add(chunk: string, onLine: (line: string) => void): void {
    let from = 0
    if (this.#rest !== '' || this.#isCut) {
      const end = chunk.indexOf('\n')
      if (end < 0) {
        this.#keep(chunk)
        return
      }
      this.#keep(chunk.slice(0, end))
      this.#flush(onLine)
      from = end + 1
    }
    for (let end = chunk.indexOf('\n', from); end >= 0; end = chunk.indexOf('\n', from)) {
      const to = end > from && chunk.charCodeAt(end - 1) === 0x0d ? end - 1 : end
      if (to > from) onLine(to - from > MAX_LINE ? chunk.slice(from, from + MAX_LINE) : chunk.slice(from, to))
      from = end + 1
    }
    if (from < chunk.length) this.#keep(chunk.slice(from))
  }

  /** Ends the text: the last line has no line break. */
  end(onLine: (line: string) => void): void {
    this.#flush(onLine)
  }

  #keep(part: string): void {
    if (this.#rest.length + part.length > MAX_LINE) this.#isCut = true
    if (this.#rest.length < MAX_LINE) this.#rest += part.slice(0, MAX_LINE - this.#rest.length)
  }

  #flush(onLine: (line: string) => void): void {
    const line = this.#rest.endsWith('\r') ? this.#rest.slice(0, -1) : this.#rest
    this.#rest = ''
    this.#isCut = false
    if (line !== '') onLine(line)
  }
}
