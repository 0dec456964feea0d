import { createServer } from 'node:http'
import { WebSocketServer } from 'ws'

const tickMs = 50

/** A service with quick answers, uploads, streams of events without an end, and WebSockets that repeat what they get. */
export async function startService() {
  const server = createServer((request, response) => {
    if (request.url === '/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const timer = setInterval(() => response.write('data: tick\n\n'), tickMs)
      response.once('close', () => clearInterval(timer))
      return
    }
    let bytes = 0
    request.on('data', piece => {
      bytes += piece.length
    })
    request.on('end', () => response.end(String(bytes)))
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => socket.on('message', message => socket.send(message)))
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      for (const socket of sockets.clients) socket.terminate()
      server.close()
      server.closeAllConnections()
    },
  }
}
