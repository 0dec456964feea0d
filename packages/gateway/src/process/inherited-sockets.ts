/** Listening sockets that were open before this process began, by their file descriptors. */
export interface InheritedSockets {
  readonly traffic?: number | undefined
  readonly admin?: number | undefined
  /** True if another gateway started this process to take its place, and waits until it takes calls. */
  readonly fromPredecessor: boolean
}

/** Names of the sockets that a predecessor hands over, from descriptor 3 on, separated by colons. */
export const socketsVariable = 'DIANA_SOCKETS'

const firstDescriptor = 3

/**
 * Takes the sockets that a predecessor or systemd has opened for this process. systemd's are those of LISTEN_FDS: one with
 * the name `admin` is for operators, another one for calls. The variables are taken out, so that no child reads them.
 */
export function takeInheritedSockets(env: NodeJS.ProcessEnv, pid: number): InheritedSockets {
  const names = namesIn(env, pid)
  const fromPredecessor = Boolean(env[socketsVariable])
  for (const name of [socketsVariable, 'LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES']) delete env[name]
  const at = (found: number): number | undefined => (found < 0 ? undefined : firstDescriptor + found)
  return { traffic: at(names.findIndex(name => name !== 'admin')), admin: at(names.indexOf('admin')), fromPredecessor }
}

function namesIn(env: NodeJS.ProcessEnv, pid: number): string[] {
  const handedOver = env[socketsVariable]
  if (handedOver) return handedOver.split(':')
  const count = Number(env.LISTEN_FDS ?? 0)
  // the variables may be those of a parent, which has the sockets
  if (!(count >= 1) || Number(env.LISTEN_PID) !== pid) return []
  const names = env.LISTEN_FDNAMES?.split(':') ?? []
  return Array.from({ length: count }, (_, index) => names[index] ?? 'unknown')
}
