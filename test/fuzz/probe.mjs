// Preloaded into the processes of the gateway: tells over a socket how much memory they use after a garbage collection.
import { createServer } from 'node:net'
import { join } from 'node:path'

const server = createServer(socket => {
  socket.on('error', () => {})
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  socket.end(JSON.stringify({ pid: process.pid, program: process.argv[1], heapUsed, rss }))
})
server.on('error', () => {})
// exclusive: a cluster's worker would ask its supervisor to listen
server.listen({ path: join(process.env.FUZZ_PROBES, `${process.pid}`), exclusive: true })
server.unref()
