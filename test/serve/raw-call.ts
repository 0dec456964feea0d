import { connect } from 'node:net'

export interface RawCall {
  readonly port: number
  readonly bytes: Buffer | string
  /** The address of the caller, one of this machine. */
  readonly from: string
  /** The caller leaves as soon as it has sent everything. */
  readonly leaves?: boolean | undefined
  /** The caller waits for this long. */
  readonly waitMs: number
}

/** Sends bytes, and returns the status of the first answer that is final; 0 if there is none. */
export function callRaw({ port, bytes, from, leaves = false, waitMs }: RawCall): Promise<number> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect({ port, host: '127.0.0.1', localAddress: from })
    const end = (): void => {
      clearTimeout(timer)
      socket.destroy()
      const statuses = [...text.matchAll(/^HTTP\/1\.[01] (\d{3})/gm)].map(([, status]) => Number(status))
      resolve(statuses.filter(status => status >= 200).at(0) ?? 0)
    }
    const timer = setTimeout(end, waitMs)
    socket.on('error', () => {})
    socket.on('close', end)
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? Number.NaN)
      if (head >= 0 && !text.startsWith('HTTP/1.1 1') && text.length >= head + 4 + length) end()
    })
    socket.write(bytes, () => {
      if (leaves) setTimeout(end, 5)
    })
  })
}
