/** Connections that send nothing: some stay, some come and go. */
export const connectionFlood = {
  name: 'connection flood',
  connections: 400,
  steps: index => (index % 2 === 0 ? [{ pause: 60_000 }] : [{ pause: 250 }, 'reset']),
}
