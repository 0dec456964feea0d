export function measureStreams(options: { streams: number; slices: number; calls: number }): Promise<{
  served: number
  open: number
  ended: number
  endMs: number
  bytesPerStream: number
  /** The CPU microseconds of an ordinary call, slice by slice. */
  without: number[]
  meanwhile: number[]
}>
