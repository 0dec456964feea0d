/** What the fleet is held to, each under a path of its own, and how many calls each process offers in a second. */
export const rules = [
  { id: 'window', match: { path: '/window' }, limit: '120/s' },
  { id: 'bucket', match: { path: '/bucket' }, limit: '60/s', algorithm: 'token-bucket', burst: 30 },
  { id: 'quota', match: { path: '/quota' }, limit: '450/h' },
  // used up before anything breaks
  { id: 'levels', match: { path: '/levels' }, limit: ['45/s', '60/m', '90/h'] },
]

export const offers = [
  { path: '/window', perSecond: 80 },
  { path: '/bucket', perSecond: 50 },
  { path: '/quota', perSecond: 15 },
  { path: '/levels', perSecond: 20 },
]

/** A pace that the processes share, for faults that ask for it; its permits are reported after the calls of all rules. */
export const pace = { perSecond: 60, maxBurst: '100ms' }
