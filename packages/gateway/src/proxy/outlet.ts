/** Where the answer of a service goes. */
export interface Outlet {
  /** Begins the answer. `onReady` is called when more may be written, `onGone` when nobody waits for it any more. */
  begin(status: number, text: string, headers: readonly string[], onReady: () => void, onGone: () => void): void
  /** False when `onReady` is to be awaited before more is written. */
  write(chunk: Buffer): boolean
  /** Ends the answer, with the service's trailers. */
  end(trailers?: readonly (string | Buffer)[] | null): void
  /** Breaks an answer off that has begun. */
  breakOff(error: Error): void
}
