// Opens streams through the gateway from addresses of its own, and keeps them: node client.mjs PORT KIND STREAMS FIRST_ADDRESS
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const [port, kind, streams, firstAddress] = process.argv.slice(2)
/** Fewer than one caller may have, by default. */
const perAddress = 400
const atOnce = 100

const heads = {
  events: 'GET /events HTTP/1.1\r\nHost: streams\r\nAccept: text/event-stream\r\n\r\n',
  websocket:
    'GET /socket HTTP/1.1\r\nHost: streams\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
}

const sockets = []
let ended = 0

/** Resolves when the stream is open and the first word of the service has come. */
function open(at) {
  const localAddress = `127.0.0.${Number(firstAddress) + Math.floor(at / perAddress)}`
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress })
    let received = ''
    socket.setEncoding('latin1')
    socket.on('data', piece => {
      received += piece
      if (received.includes('hello')) resolve()
    })
    socket.on('error', reject)
    socket.on('close', () => {
      ended++
      reject(new Error(`a stream ended: ${received.slice(0, 200)}`))
    })
    socket.write(heads[kind])
    sockets.push(socket)
  })
}

const opening = Array.from({ length: Number(streams) }, (_, at) => at)
let failures = 0
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (let at = opening.shift(); at !== undefined; at = opening.shift()) {
      await open(at).catch(error => {
        if (failures++ === 0) process.stderr.write(`${error.message}\n`)
      })
    }
  }),
)
process.send({ served: Number(streams) - failures })

process.on('disconnect', () => process.exit())
process.on('message', async message => {
  if (message === 'count') process.send({ open: sockets.length - ended })
  if (message !== 'end') return
  for (const socket of sockets) socket.end()
  for (let tries = 0; ended < sockets.length && tries < 500; tries++) await pause(20)
  process.send({ ended })
})
