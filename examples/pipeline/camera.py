"""Takes pictures: writes the number of each to stdout, 4 bytes."""
import sys
import time

import video
from video import PictureStep

for n in range(int(sys.argv[1])):
    video.picture_step(PictureStep.taken, n=n)
    sys.stdout.buffer.write(n.to_bytes(4, sys.byteorder))
    sys.stdout.buffer.flush()
    time.sleep(0.001)
