// The service behind the gateway, in a process of its own: events that never come, WebSockets that say one word, ordinary calls.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'

const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const body = JSON.stringify({ id: 7, state: 'paid', lines: [{ item: 'bow', count: 1 }] })

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  if (request.url === '/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: hello\n\n')
    return
  }
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
})

server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${magic}`).digest('base64')
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
  socket.write(`${[...head, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`)
  // one text frame: hello
  socket.write(Buffer.from([0x81, 5, ...Buffer.from('hello')]))
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
  socket.resume()
})

process.on('disconnect', () => process.exit())
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => process.send(server.address().port))
