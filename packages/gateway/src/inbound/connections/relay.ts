import type { Socket } from 'node:net'
import { type BulkQueue, bulkBytes } from './bulk-queue.ts'

/** Sends what one socket receives to another, as fast as the other takes it and as the turns of the event loop allow. */
export function relay(from: Socket, to: Socket, bulk: BulkQueue): void {
  let bytes = 0
  const resume = (): void => void from.resume()
  from.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    const hasRoom = to.write(chunk)
    if (hasRoom && bytes < bulkBytes) return
    from.pause()
    bytes = 0
    if (hasRoom) bulk.join(resume)
    else to.once('drain', () => bulk.join(resume))
  })
  from.on('end', () => to.end())
  // it may have been paused until the other was there
  resume()
}
