/** What the answer of a service comes from. */
export interface OutletSource {
  /** More may be written. */
  onReady(): void
  /** The caller does not wait for the answer any more. */
  onGone(): void
}

/** Where the answer of a service goes. */
export interface ResponseSink {
  begin(status: number, text: string, headers: readonly string[], source: OutletSource): void
  /** Sends an answer that is whole. */
  send(status: number, text: string, headers: readonly string[], body: Buffer): void
  /** False when `onReady` is to be awaited before more is written. */
  write(chunk: Buffer): boolean
  /** Ends the answer, with the service's trailers. */
  end(trailers?: readonly (string | Buffer)[] | null): void
  /** Breaks an answer off that has begun. */
  breakOff(error: Error): void
}
