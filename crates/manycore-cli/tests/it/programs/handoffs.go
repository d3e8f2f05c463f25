// Two goroutines that take a mutex in turns, with pauses in which no thread has anything to do.
package main

import (
	"sync"
	"time"
)

func main() {
	var mutex sync.Mutex
	var both sync.WaitGroup
	for worker := 0; worker < 2; worker++ {
		both.Add(1)
		go func() {
			defer both.Done()
			for turn := 0; turn < 50; turn++ {
				mutex.Lock()
				time.Sleep(2 * time.Millisecond)
				mutex.Unlock()
			}
		}()
	}
	both.Wait()
}
