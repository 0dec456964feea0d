import type { LogSource } from '../reading/log-chunks.ts'

const EVERY_MS = 200
const WIDTH = 24

/** Shows on one line of a screen how much of the logs has been read. */
export class Progress {
  readonly #logs: readonly LogSource[]
  readonly #write: (text: string) => void
  #shownAt = 0

  constructor(logs: readonly LogSource[], write: (text: string) => void) {
    this.#logs = logs
    this.#write = write
  }

  show(lines: number): void {
    const now = performance.now()
    if (now - this.#shownAt < EVERY_MS) return
    this.#shownAt = now
    const sizes = this.#logs.map(({ size }) => size)
    const read = this.#logs.reduce((sum, log) => sum + log.bytesRead(), 0)
    const counted = `${new Intl.NumberFormat('en').format(lines)} lines`
    if (sizes.includes(undefined)) this.#write(`\r${counted}`)
    else {
      const share = Math.min(
        1,
        read /
          Math.max(
            1,
            sizes.reduce((sum: number, size) => sum + size!, 0),
          ),
      )
      const full = Math.round(share * WIDTH)
      this.#write(`\r[${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${Math.floor(share * 100)} %  ${counted}`)
    }
  }

  clear(): void {
    if (this.#shownAt > 0) this.#write('\r\x1b[K')
  }
}
