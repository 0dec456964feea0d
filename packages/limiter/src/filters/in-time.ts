/** The longest time that a function of the application may take to answer. */
export const MOST_ANSWER_MS = 5000

/** Rejects if the answer of a function takes too long: it would otherwise hold the connection of every caller. */
export async function inTime<T>(answer: PromiseLike<T>, name: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const message = `${name} gave no answer within ${MOST_ANSWER_MS} ms`
    timer = setTimeout(() => reject(new Error(message)), MOST_ANSWER_MS)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
