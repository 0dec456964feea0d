export { limitEvents, type SocketIoSocket } from './socket-io.ts'
export { limitMessages, type MessageOptions, type MessageSocket } from './ws.ts'
